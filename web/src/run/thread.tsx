import { useVirtualizer } from "@tanstack/react-virtual"
import { useEffect, useMemo, useRef } from "react"
import { useTranslation } from "react-i18next"
import { CallRow } from "../conversation/call_row"
import { rowsOfRun } from "../conversation/row"
import { Answer, Failure, Said } from "../conversation/row_view"
import type { Run as Folded } from "../fold/run"
import type { Words } from "../fold/words"
import { Icon } from "../ui/icon"
import { Skeleton } from "../ui/page"
import { isActive } from "../ui/state"
import type { TabProps } from "./page"

/** So near the end (pixels) one reads the end, and goes along with it. */
const near = 48

/** What the run was asked, and every step and call since. What is read stays where it is, whatever comes. */
export function ThreadTab({ run, log }: TabProps) {
  if (!log.run) return log.phase === "loading" ? <Skeleton /> : null
  return <Rows run={log.run} words={log.words} active={isActive(run.state)} />
}

function Rows({ run, words, active }: { run: Folded; words: Words | null; active: boolean }) {
  const { t } = useTranslation()
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useMemo(() => rowsOfRun(run, words), [run, words])
  const list = useVirtualizer({
    count: rows.length + 1,
    getScrollElement: () => scroller.current,
    estimateSize: () => 96,
    getItemKey: (i) => (i === 0 ? "prompt" : rows[i - 1]!.key),
    overscan: 8,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: near,
  })
  const opened = useRef(false)
  useEffect(() => {
    if (!opened.current && active) list.scrollToEnd()
    opened.current = true
  }, [list, active])
  const atEnd = list.isAtEnd(near)
  return (
    <div className="relative min-h-0 flex-1">
      <div ref={scroller} tabIndex={0} role="region" aria-label={t("run.tab.thread")} className="h-full overflow-y-auto [overflow-anchor:none]">
        <ol className="relative w-full" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => (
            <li
              key={item.key}
              ref={list.measureElement}
              data-index={item.index}
              aria-setsize={rows.length + 1}
              aria-posinset={item.index + 1}
              className="absolute top-0 left-0 w-full px-4 pb-1 sm:px-6"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {item.index === 0 ? <Said text={run.prompt} at={run.queuedAt} waiting={false} /> : <OneRow row={rows[item.index - 1]!} />}
            </li>
          ))}
        </ol>
        {rows.length === 0 && <p className="px-4 py-6 text-sm text-muted sm:px-6">{active ? t("run.no_steps_yet") : t("run.no_steps")}</p>}
      </div>
      {!atEnd && rows.length > 0 && active && (
        <button type="button" onClick={() => list.scrollToEnd()} className="absolute bottom-3 left-1/2 flex h-8 -translate-x-1/2 items-center gap-1.5 rounded-full bg-surface px-3 text-sm shadow-raised">
          <Icon name="down" />
          {t("conversation.to_end")}
        </button>
      )}
    </div>
  )
}

function OneRow({ row }: { row: ReturnType<typeof rowsOfRun>[number] }) {
  if (row.type === "answer") return <Answer text={row.text} still={row.still} broken={row.broken} />
  if (row.type === "call") return <CallRow call={row.call} run={row.run} />
  if (row.type === "end") return <Failure code={row.code} message={row.message} />
  return null
}
