import { useQuery } from "@tanstack/react-query"
import { Navigate } from "@tanstack/react-router"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { spaceName, spacesQuery, useShownSpace } from "../space/space"
import { Button } from "../ui/button"
import { Empty, Loaded, PageHead } from "../ui/page"
import { CreateSpace } from "../space/create"

/** Leads to the space that was shown last; without any it says what a space is. */
export function Home() {
  const { t } = useTranslation()
  const spaces = useQuery(spacesQuery)
  const shown = useShownSpace()
  const [creating, setCreating] = useState(false)
  if (shown) return <Navigate to="/s/$space/conversations" params={{ space: spaceName(shown) }} replace />
  return (
    <>
      <PageHead title={t("shell.welcome")} />
      <Loaded of={spaces}>
        <Empty
          icon="members"
          title={t("space.none.title")}
          action={
            <Button kind="primary" onClick={() => setCreating(true)}>
              {t("space.create.title")}
            </Button>
          }
        >
          {t("space.none.about")}
        </Empty>
      </Loaded>
      <CreateSpace open={creating} onClose={() => setCreating(false)} />
    </>
  )
}
