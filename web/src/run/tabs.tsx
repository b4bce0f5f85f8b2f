import { useNavigate } from "@tanstack/react-router"
import type { KeyboardEvent } from "react"
import { useTranslation } from "react-i18next"

const names = ["thread", "timeline", "changes", "boundary", "events"] as const
type Name = (typeof names)[number]

/** The tabs, which are in the address. Arrows, Home and End move among them. */
export function Tabs({ current }: { current: Name }) {
  const { t } = useTranslation()
  const navigate = useNavigate({ from: "/runs/$run" })
  const show = (tab: Name) => void navigate({ search: (s) => ({ ...s, tab, q: undefined }) })
  const move = (e: KeyboardEvent<HTMLElement>) => {
    const at = names.indexOf(current)
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + names.length, Home: 0, End: names.length - 1 }[e.key]
    if (to === undefined || e.ctrlKey || e.metaKey || e.altKey) return
    e.preventDefault()
    const next = names[to % names.length]!
    show(next)
    document.getElementById(`tab-${next}`)?.focus()
  }
  return (
    <div role="tablist" aria-label={t("run.tabs")} onKeyDown={move} className="flex shrink-0 gap-1 overflow-x-auto border-b px-2 sm:px-4">
      {names.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-selected={name === current}
          aria-controls={name === current ? "run-panel" : undefined}
          tabIndex={name === current ? 0 : -1}
          onClick={() => show(name)}
          className={`h-9 shrink-0 border-b-2 px-2 text-sm whitespace-nowrap focus-visible:-outline-offset-2 ${name === current ? "border-accent font-medium text-text" : "border-transparent text-muted hover:text-text"}`}
        >
          {t(`run.tab.${name}`)}
        </button>
      ))}
    </div>
  )
}
