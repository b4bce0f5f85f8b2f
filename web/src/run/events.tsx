import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { useVirtualizer } from "@tanstack/react-virtual"
import { type KeyboardEvent, memo, useCallback, useEffect, useMemo, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { useFormat } from "../i18n/format"
import type { LogEvent } from "../live/frame"
import { useActor } from "../space/member"
import { Copy } from "../ui/copy"
import { SelectBox } from "../ui/field"
import { Icon } from "../ui/icon"
import { Skeleton, ToolBar } from "../ui/page"
import { isActive } from "../ui/state"
import type { TabProps } from "./page"

const route = getRouteApi("/app/runs/$run")
const near = 48

/** The run's facts as the log has them. */
export function EventsTab({ run, log }: TabProps) {
  const { t } = useTranslation()
  const format = useFormat()
  const { q, position } = route.useSearch()
  const navigate = useNavigate({ from: "/runs/$run" })
  const kinds = useMemo(() => countKinds(log.events), [log.events])
  const shown = useMemo(() => (q ? log.events.filter((e) => e.kind === q) : log.events), [log.events, q])
  if (log.phase === "loading") return <Skeleton />
  const marked = position === undefined || shown.some((e) => e.position === position)
  return (
    <>
      <div className="pt-3">
        <ToolBar>
          <SelectBox label={t("run.event.kind")} value={q ?? ""} onChange={(e) => void navigate({ search: (s) => ({ ...s, q: e.target.value || undefined }), replace: true })}>
            <option value="">{t("run.event.any")}</option>
            {kinds.map(([kind, count]) => (
              <option key={kind} value={kind}>{`${kind} (${format.number(count)})`}</option>
            ))}
          </SelectBox>
          <span className="text-sm text-muted">{t("run.event.count", { count: shown.length })}</span>
          {!marked && <span className="text-sm text-warn">{t("run.event.no_position", { position })}</span>}
        </ToolBar>
      </div>
      {shown.length === 0 ? <p className="px-4 py-6 text-sm text-muted sm:px-6">{q ? t("ui.nothing_found") : t("run.event.none")}</p> : <List key={q} events={shown} start={log.events[0]!} live={isActive(run.state)} />}
    </>
  )
}

function countKinds(events: readonly LogEvent[]): [kind: string, count: number][] {
  const counts = new Map<string, number>()
  for (const { kind } of events) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
}

function List({ events, start, live }: { events: readonly LogEvent[]; start: LogEvent; live: boolean }) {
  const { t } = useTranslation()
  const { event, position } = route.useSearch()
  const navigate = useNavigate({ from: "/runs/$run" })
  const scroller = useRef<HTMLDivElement>(null)
  const list = useVirtualizer({ count: events.length, getScrollElement: () => scroller.current, estimateSize: () => 37, getItemKey: (i) => events[i]!.position, overscan: 12 })
  const atEnd = list.isAtEnd(near)
  const unread = useFollowing(list, events.length, live && position === undefined)
  const at = events.findIndex((e) => e.position === position)
  const gone = useRef<number | undefined>(undefined)
  useEffect(() => {
    if (at < 0 || gone.current === position) return
    gone.current = position
    list.scrollToIndex(at, { align: "center" })
  }, [at, position, list])
  const toggle = useCallback((one: number) => void navigate({ search: (s) => ({ ...s, event: s.event === String(one) ? undefined : String(one) }), replace: true }), [navigate])
  const actor = useActor()
  const keys = (e: KeyboardEvent<HTMLElement>) => {
    const target = e.target as HTMLElement
    if (e.ctrlKey || e.metaKey || e.altKey || target.closest("pre")) return
    if (e.key === "Escape" && event !== undefined) return void navigate({ search: (s) => ({ ...s, event: undefined }), replace: true })
    const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[e.key]
    const from = Number(target.closest("[data-index]")?.getAttribute("data-index") ?? NaN)
    if (by === undefined || (Number.isNaN(from) && e.key.startsWith("Arrow"))) return
    e.preventDefault()
    const to = Number.isNaN(from) ? (list.getVirtualItems().find((i) => i.start >= (list.scrollOffset ?? 0))?.index ?? 0) : from + by
    if (to < 0 || to >= events.length) return
    list.scrollToIndex(to, { align: "auto" })
    const focus = () => scroller.current?.querySelector<HTMLElement>(`[data-index="${to}"] [data-row]`)?.focus({ preventScroll: true })
    focus()
    requestAnimationFrame(focus) // one that was far away is in the page only then
  }
  return (
    <div className="relative min-h-0 flex-1 border-t">
      <div ref={scroller} onKeyDown={keys} tabIndex={0} role="region" aria-label={t("run.tab.events")} data-rows={events.length} className="h-full overflow-y-auto focus-visible:-outline-offset-2">
        <ol className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => {
            const e = events[item.index]!
            return (
              <li
                key={item.key}
                ref={list.measureElement}
                data-index={item.index}
                data-position={e.position}
                aria-setsize={events.length}
                aria-posinset={item.index + 1}
                className={`absolute top-0 left-0 w-full border-b border-l-2 ${e.position === position ? "border-l-accent bg-accent-soft" : "border-l-transparent"}`}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <Row event={e} actor={actor(e.actor)} since={Date.parse(e.at) - Date.parse(start.at)} open={event === String(e.position)} marked={e.position === position} onToggle={toggle} />
              </li>
            )
          })}
        </ol>
      </div>
      {!atEnd && unread > 0 && (
        <button type="button" onClick={() => list.scrollToEnd()} className="absolute bottom-3 left-1/2 flex h-8 -translate-x-1/2 items-center gap-1.5 rounded-full bg-surface px-3 text-sm shadow-raised">
          <Icon name="down" />
          {t("conversation.unread", { count: unread })}
        </button>
      )}
    </div>
  )
}

/** Goes along with what comes when the end is in sight; else says how many came below it. */
function useFollowing(list: { isAtEnd: (near: number) => boolean; scrollToEnd: () => void }, count: number, atStart: boolean): number {
  const [seen, setSeen] = useState(count)
  const following = useRef(atStart)
  const last = useRef(0)
  const atEnd = list.isAtEnd(near)
  useEffect(() => {
    if (last.current === count) {
      following.current = atEnd
    } else if (last.current > 0 ? following.current : atStart) {
      list.scrollToEnd()
      following.current = true
    }
    last.current = count
    if (atEnd) setSeen(count)
  }, [list, count, atEnd, atStart])
  return count - seen
}

type RowProps = { event: LogEvent; actor: string; since: number; open: boolean; marked: boolean; onToggle: (position: number) => void }

/** Drawn again only when something of it changed: while one scrolls, most rows stay. */
const Row = memo(function Row({ event: e, actor, since, open, marked, onToggle }: RowProps) {
  const { t } = useTranslation()
  const format = useFormat()
  return (
    <>
      <button
        type="button"
        data-row
        aria-expanded={open}
        onClick={() => onToggle(e.position)}
        className="grid min-h-9 w-full grid-cols-[4.5rem_minmax(0,1fr)_auto] items-center gap-x-3 px-4 py-1 text-left text-sm hover:bg-hover focus-visible:-outline-offset-2 sm:grid-cols-[5rem_7rem_minmax(0,1fr)_minmax(0,12rem)_1rem] sm:px-6"
      >
        <span className="text-xs text-muted tabular-nums">
          <span aria-hidden="true">{marked ? "▸ " : ""}</span>
          {e.position}
        </span>
        <span className="hidden text-xs text-muted tabular-nums sm:inline" title={e.at}>
          +{format.duration(since)}
        </span>
        <code className="truncate font-mono text-xs">{e.kind}</code>
        <span className="hidden truncate text-xs text-muted sm:inline">{actor}</span>
        <Icon name={open ? "down" : "right"} className="text-muted" />
      </button>
      {open && (
        <div className="flex flex-col gap-2 px-4 pb-3 sm:px-6">
          <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-muted">
            <time dateTime={e.at}>{e.at}</time>
            <span>{actor}</span>
            <Copy text={JSON.stringify(e, null, 2)} label={t("run.event.copy")} />
            <Copy text={linkTo(e.position)} label={t("run.event.link")} />
          </div>
          <pre tabIndex={0} aria-label={`${e.kind} ${e.position}`} className="max-h-96 overflow-auto rounded-md border bg-sunken p-3 font-mono text-xs leading-4">
            {JSON.stringify(e, null, 2)}
          </pre>
        </div>
      )}
    </>
  )
})

const linkTo = (position: number) => `${location.origin}${location.pathname}?tab=events&position=${position}&event=${position}`
