import { useRouter } from "@tanstack/react-router"
import { useTranslation } from "react-i18next"
import { problemOf } from "../api/problem"
import { PageHead } from "../ui/page"
import { ProblemNote } from "../ui/problem"

/** A page that could not be loaded or shown. */
export function RouteProblem({ error, reset }: { error: unknown; reset: () => void }) {
  const { t } = useTranslation()
  const router = useRouter()
  const again = () => {
    reset()
    void router.invalidate()
  }
  return (
    <main className="mx-auto max-w-2xl">
      <PageHead title={t("shell.failed")} />
      <div className="px-4 sm:px-6">
        <ProblemNote problem={problemOf(error)} again={again} />
      </div>
    </main>
  )
}
