import type { KeyboardEvent, ReactNode } from "react"
import { useTranslation } from "react-i18next"
import { Button } from "./button"

type Paged = { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }

/** Rows with one link or button each, marked data-row. j and k go down and up; Enter follows by itself. */
export function Rows({ label, children, paged }: { label: string; children: ReactNode; paged?: Paged }) {
  const { t } = useTranslation()
  return (
    <>
      <ul aria-label={label} onKeyDown={stepRows} className="border-t">
        {children}
      </ul>
      {paged?.hasNextPage && (
        <div className="px-4 py-3 sm:px-6">
          <Button busy={paged.isFetchingNextPage} onClick={() => void paged.fetchNextPage()}>
            {t("ui.more")}
          </Button>
        </div>
      )}
    </>
  )
}

/** How a row looks. Its link covers it: after:inset-0 on the link. */
export const rowClass = "relative flex min-h-11 items-center gap-3 border-b px-4 py-2 hover:bg-hover has-[[data-row]:focus-visible]:bg-hover sm:px-6"
export const rowLinkClass = "min-w-0 truncate font-medium after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-accent"

export function stepRows(e: KeyboardEvent<HTMLElement>) {
  if (e.key !== "j" && e.key !== "k" && e.key !== "ArrowDown" && e.key !== "ArrowUp") return
  if (e.ctrlKey || e.metaKey || e.altKey || (e.target as HTMLElement).matches("input, textarea, select")) return
  if (focusRow(e.currentTarget, e.key === "j" || e.key === "ArrowDown" ? 1 : -1)) e.preventDefault()
}

/** Moves the focus to the next or previous row; from outside, to the first. */
export function focusRow(within: ParentNode, by: 1 | -1): boolean {
  const rows = [...within.querySelectorAll<HTMLElement>("[data-row]")]
  const at = rows.indexOf(document.activeElement as HTMLElement)
  const next = rows[at < 0 ? 0 : at + by]
  next?.focus()
  return next !== undefined
}
