import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { CreateSpace } from "../space/create"
import { spaceName, spacesQuery, useShownSpace } from "../space/space"
import { buttonClass } from "../ui/button"
import { Icon } from "../ui/icon"
import { Menu, MenuChoices, MenuItem, MenuLine } from "../ui/menu"
import { Mark } from "./mark"

export function SpaceSwitcher() {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { data: spaces } = useQuery(spacesQuery)
  const shown = useShownSpace()
  const [creating, setCreating] = useState(false)
  const name = (s: { name: string | null }) => s.name ?? t("space.unnamed")
  return (
    <>
      <Link to="/" aria-label={t("shell.home")} className="hidden size-8 items-center justify-center rounded-md hover:bg-hover md:flex">
        <Mark className="size-5" />
      </Link>
      {shown && (
        <Menu
          trigger={
            <button type="button" className={`${buttonClass("quiet")} max-w-44 shrink! px-2`}>
              <span className="sr-only">{t("shell.space")}</span>
              <span className="truncate">{name(shown)}</span>
              <Icon name="down" className="text-muted" />
            </button>
          }
        >
          <MenuChoices
            label={t("shell.space")}
            value={spaceName(shown)}
            choices={(spaces ?? []).map((s) => ({ value: spaceName(s), label: name(s) }))}
            onChoose={(space) => void navigate({ to: "/s/$space/conversations", params: { space } })}
          />
          <MenuLine />
          <MenuItem onSelect={() => setCreating(true)}>
            <Icon name="plus" />
            {t("space.create.title")}
          </MenuItem>
        </Menu>
      )}
      <CreateSpace open={creating} onClose={() => setCreating(false)} />
    </>
  )
}
