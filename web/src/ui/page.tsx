import { type ReactNode, useEffect } from "react"
import { useTranslation } from "react-i18next"
import { problemOf } from "../api/problem"
import { Icon, type IconName } from "./icon"
import { ProblemNote } from "./problem"

/** The head of a page: its title, which is the document's too, and what can be done here. */
export function PageHead({ title, children, above }: { title: string; children?: ReactNode; above?: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Cairn`
  }, [title])
  return (
    <header className="flex flex-col gap-1 px-4 pt-4 pb-3 sm:px-6">
      {above}
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
        <h1 className="min-w-0 text-xl font-semibold break-words">{title}</h1>
        {children && <div className="flex flex-wrap items-center gap-2">{children}</div>}
      </div>
    </header>
  )
}

/** Filters and search above a list. */
export function ToolBar({ children }: { children: ReactNode }) {
  return <div className="flex flex-wrap items-center gap-2 px-4 pb-3 sm:px-6">{children}</div>
}

/** What is here, and the one next step. */
export function Empty({ icon, title, children, action }: { icon: IconName; title: string; children: ReactNode; action?: ReactNode }) {
  return (
    <div className="mx-auto flex max-w-md flex-col items-center gap-3 px-4 py-16 text-center">
      <span className="flex size-12 items-center justify-center rounded-lg bg-sunken text-muted">
        <Icon name={icon} className="size-6" />
      </span>
      <h2 className="text-lg font-semibold">{title}</h2>
      <p className="text-muted">{children}</p>
      {action}
    </div>
  )
}

/** Where rows will be. It shows only when they take longer than 200 ms. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  const { t } = useTranslation()
  return (
    <div role="status" className="animate-appear px-4 py-2 sm:px-6">
      <span className="sr-only">{t("ui.loading")}</span>
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} aria-hidden="true" className="flex h-11 items-center gap-3">
          <div className="size-4 rounded-full bg-sunken" />
          <div className={`h-3 rounded-sm bg-sunken ${["w-1/2", "w-1/3", "w-2/5"][i % 3]}`} />
        </div>
      ))}
    </div>
  )
}

type Asked = { isPending: boolean; error: unknown; refetch: () => unknown; data?: unknown }

/** Waits for what was asked, and says why it did not come. What is there already stays. */
export function Loaded({ of: query, rows, children }: { of: Asked; rows?: number; children: ReactNode }) {
  if (query.error && query.data === undefined) {
    return (
      <div className="px-4 py-4 sm:px-6">
        <ProblemNote problem={problemOf(query.error)} again={() => void query.refetch()} />
      </div>
    )
  }
  return query.isPending ? <Skeleton rows={rows} /> : children
}
