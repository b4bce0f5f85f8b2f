import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { useVirtualizer } from "@tanstack/react-virtual"
import { type ReactNode, useEffect, useMemo, useRef } from "react"
import { useTranslation } from "react-i18next"
import { usePages } from "../api/query"
import { useFormat } from "../i18n/format"
import { Button } from "../ui/button"
import { useKeys } from "../ui/keys"
import { Empty, Loaded } from "../ui/page"
import { SearchQuery } from "../ui/search"
import { isActive } from "../ui/state"
import { DiffView } from "./diff_view"
import type { TabProps } from "./page"
import { type Change, type Changes, runChanges } from "./query"

const route = getRouteApi("/app/runs/$run")

/** A letter as version control writes it; the word is beside it. */
const letter: Record<Change["change"], string> = { added: "A", modified: "M", deleted: "D", renamed: "R", mode: "P", type: "T" }
const colour: Record<Change["change"], string> = { added: "text-ok", modified: "text-accent", deleted: "text-bad", renamed: "text-warn", mode: "text-muted", type: "text-warn" }

export function ChangesTab({ run }: TabProps) {
  const pages = usePages<Change>(["run", run.run_id, "changes", isActive(run.state)], (cursor) => runChanges(run.run_id, cursor))
  const first = pages.data?.pages[0] as Changes | undefined
  return <Loaded of={pages}>{first && <Recorded first={first} pages={pages} run={run.run_id} />}</Loaded>
}

type Pages = ReturnType<typeof usePages<Change>>

function Recorded({ first, pages, run }: { first: Changes; pages: Pages; run: string }) {
  const { t } = useTranslation()
  if (first.state === "pending") return <Told title={t("run.changes.pending.title")}>{t("run.changes.pending.about")}</Told>
  if (first.state === "unavailable") {
    const about = first.reason === "no_sandbox" ? t("run.changes.no_sandbox") : first.reason === "not_recorded" ? t("run.changes.not_recorded") : (first.reason ?? "")
    return <Told title={t(first.reason === "no_sandbox" ? "run.changes.none" : "run.changes.unavailable")}>{about}</Told>
  }
  if (first.items.length === 0) return <Told title={t("run.changes.none")}>{t("run.changes.none_about")}</Told>
  return <Review first={first} pages={pages} run={run} />
}

const Told = ({ title, children }: { title: string; children: ReactNode }) => (
  <div className="min-h-0 flex-1 overflow-y-auto">
    <Empty icon="diff" title={title}>
      {children}
    </Empty>
  </div>
)

function Review({ first, pages, run }: { first: Changes; pages: Pages; run: string }) {
  const { t } = useTranslation()
  const { path, q } = route.useSearch()
  const navigate = useNavigate({ from: "/runs/$run" })
  const found = useMemo(() => (q ? pages.items.filter((c) => `${c.path}\n${c.old_path ?? ""}`.toLowerCase().includes(q.toLowerCase())) : pages.items), [pages.items, q])
  const selected = pages.items.find((c) => c.path === path)
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages
  const searching = hasNextPage && (q !== undefined || (path !== undefined && !selected))
  useEffect(() => {
    if (searching && !isFetchingNextPage) void fetchNextPage()
  }, [searching, isFetchingNextPage, fetchNextPage])
  const select = (to: string | undefined) => void navigate({ search: (s) => ({ ...s, path: to }), replace: true })
  const step = (by: 1 | -1) => {
    const at = found.findIndex((c) => c.path === path)
    const next = found[at < 0 ? 0 : at + by]
    if (next) select(next.path)
  }
  useSteps(step)
  useKeys({ Escape: () => select(undefined) })
  return (
    <>
      <Totals first={first} />
      <div className="flex min-h-0 flex-1 flex-col border-t md:flex-row">
        <section aria-label={t("run.changes.files")} className={`flex min-h-0 shrink-0 flex-col md:max-h-none md:w-72 md:border-r lg:w-80 ${selected ? "max-h-44 border-b md:border-b-0" : "flex-1 md:flex-none"}`}>
          <div className="flex items-center gap-2 px-4 py-2 sm:pl-6 md:pr-3">
            <SearchQuery label={t("run.changes.filter")} value={q} onSearch={(next) => void navigate({ search: (s) => ({ ...s, q: next }), replace: true })} />
          </div>
          <List items={found} selected={path} onSelect={select} />
          {found.length === 0 && !searching && <p className="px-4 py-6 text-sm text-muted sm:px-6">{t("ui.nothing_found")}</p>}
          {hasNextPage && (
            <div className="border-t px-4 py-2 sm:px-6">
              <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
                {t("ui.more")}
              </Button>
            </div>
          )}
        </section>
        {selected ? (
          <DiffView key={selected.path} run={run} change={selected} />
        ) : (
          <p className="hidden flex-1 items-center justify-center p-6 text-sm text-muted md:flex">{path !== undefined && !searching ? t("run.changes.no_such", { path }) : t("run.changes.choose")}</p>
        )}
      </div>
    </>
  )
}

/** j and k choose the next file wherever the focus is: before the frame, which would only move the focus. */
function useSteps(step: (by: 1 | -1) => void) {
  const now = useRef(step)
  now.current = step
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if ((e.key !== "j" && e.key !== "k") || e.ctrlKey || e.metaKey || e.altKey) return
      if ((e.target as HTMLElement | null)?.closest?.("input, textarea, select, dialog, [role=menu]")) return
      e.preventDefault()
      now.current(e.key === "j" ? 1 : -1)
    }
    addEventListener("keydown", press, true)
    return () => removeEventListener("keydown", press, true)
  }, [])
}

function Totals({ first }: { first: Changes }) {
  const { t } = useTranslation()
  const format = useFormat()
  const totals = first.totals
  return (
    <div className="flex flex-wrap items-baseline gap-x-4 gap-y-1 px-4 py-2 text-sm sm:px-6">
      <span className="font-medium">{t("run.changes.count", { count: totals.files })}</span>
      {(Object.keys(letter) as Change["change"][]).map((kind) => totals[kind] > 0 && <span key={kind} className="text-muted">{`${format.number(totals[kind])} ${t(`run.change.${kind}`)}`}</span>)}
      <Lines added={totals.lines_added} removed={totals.lines_removed} />
      {first.truncated && <p className="w-full rounded-md bg-warn-soft px-3 py-1.5 text-warn">{t("run.changes.truncated")}</p>}
    </div>
  )
}

export function Lines({ added, removed }: { added: number | null; removed: number | null }) {
  const { t } = useTranslation()
  const format = useFormat()
  if (added === null && removed === null) return null
  return (
    <span className="text-xs whitespace-nowrap tabular-nums" title={t("run.changes.lines")}>
      <span className="text-ok">+{format.number(added ?? 0)}</span> <span className="text-bad">−{format.number(removed ?? 0)}</span>
    </span>
  )
}

/** Up to 10,000 paths: only those in sight are in the page. */
function List({ items, selected, onSelect }: { items: Change[]; selected: string | undefined; onSelect: (path: string) => void }) {
  const { t } = useTranslation()
  const scroller = useRef<HTMLDivElement>(null)
  const list = useVirtualizer({ count: items.length, getScrollElement: () => scroller.current, estimateSize: () => 44, getItemKey: (i) => items[i]!.path, overscan: 10 })
  const at = items.findIndex((c) => c.path === selected)
  useEffect(() => {
    if (at >= 0) list.scrollToIndex(at, { align: "auto" })
  }, [at, list])
  return (
    <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto" tabIndex={-1}>
      <ul aria-label={t("run.changes.files")} className="relative" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map((item) => {
          const c = items[item.index]!
          const cut = c.path.lastIndexOf("/") + 1
          return (
            <li key={item.key} className="absolute top-0 left-0 h-11 w-full" style={{ transform: `translateY(${item.start}px)` }} aria-setsize={items.length} aria-posinset={item.index + 1}>
              <button
                type="button"
                data-row
                aria-current={c.path === selected || undefined}
                title={c.path}
                onClick={() => (c.path === selected ? document.getElementById("diff")?.focus() : onSelect(c.path))}
                className={`flex h-full w-full items-center gap-2.5 border-l-2 px-4 text-left text-sm hover:bg-hover focus-visible:-outline-offset-2 sm:pl-5.5 md:pr-3 ${c.path === selected ? "border-accent bg-accent-soft" : "border-transparent"}`}
              >
                <span aria-hidden="true" className={`w-3 shrink-0 font-mono text-xs font-semibold ${colour[c.change]}`}>
                  {letter[c.change]}
                </span>
                <span className="min-w-0 flex-1">
                  <span className="block truncate leading-4">{c.path.slice(cut)}</span>
                  <span className="block truncate text-xs text-muted">
                    {t(`run.change.${c.change}`)}
                    {cut > 0 && ` · ${c.path.slice(0, cut - 1)}`}
                  </span>
                </span>
                <Lines added={c.lines_added} removed={c.lines_removed} />
              </button>
            </li>
          )
        })}
      </ul>
    </div>
  )
}
