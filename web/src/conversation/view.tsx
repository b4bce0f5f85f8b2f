import { useVirtualizer } from "@tanstack/react-virtual"
import { type RefObject, useEffect, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { Icon } from "../ui/icon"
import type { Outbox } from "./outbox"
import type { Row } from "./row"
import { RowView } from "./row_view"
import type { Thread, ThreadState } from "./thread"

const heights: Record<Row["type"], number> = { message: 72, pending: 72, run: 40, answer: 80, call: 120, end: 72 }
/** So near the end (pixels) one reads the end, and goes along with it. */
const near = 48

type ViewProps = { rows: Row[]; thread: Thread; outbox: Outbox; older: ThreadState["older"]; mayWork: boolean }

/** The rows of a thread. Only those in sight are in the page; what is read stays where it is, whatever comes. */
export function ThreadView({ rows, thread, outbox, older, mayWork }: ViewProps) {
  const { t } = useTranslation()
  const scroller = useRef<HTMLDivElement>(null)
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (i) => heights[rows[i]!.type],
    getItemKey: (i) => rows[i]!.key,
    overscan: 8,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: near,
    initialOffset: () => Number.MAX_SAFE_INTEGER,
  })
  const items = list.getVirtualItems()
  const atEnd = list.isAtEnd(near)
  const unread = useUnread(rows, atEnd)
  useOpenAtEnd(list, rows.length)
  const scrolled = useStaysAtEnd(scroller, list, rows.at(-1))
  const first = items[0]?.index
  useEffect(() => {
    if (first !== undefined && first < 5 && older === "more") void thread.older()
  }, [first, older, thread])
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={scroller}
        onScroll={scrolled}
        tabIndex={0}
        role="region"
        aria-label={t("conversation.rows")}
        data-rows={rows.length}
        className="h-full overflow-y-auto [overflow-anchor:none]"
      >
        <ol className="relative w-full" style={{ height: list.getTotalSize() }}>
          {items.map((item) => {
            const row = rows[item.index]!
            return (
              <li
                key={item.key}
                ref={list.measureElement}
                data-index={item.index}
                data-key={row.key}
                data-positions={row.positions.join(" ")}
                aria-setsize={rows.length}
                aria-posinset={item.index + 1}
                className="absolute top-0 left-0 w-full px-4 sm:px-6"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <RowView row={row} thread={thread} outbox={outbox} mayWork={mayWork} />
              </li>
            )
          })}
        </ol>
      </div>
      {!atEnd && rows.length > 0 && (
        <button
          type="button"
          onClick={() => list.scrollToEnd()}
          className="absolute bottom-3 left-1/2 flex h-8 -translate-x-1/2 items-center gap-1.5 rounded-full bg-surface px-3 text-sm shadow-raised"
        >
          <Icon name="down" />
          {unread > 0 ? t("conversation.unread", { count: unread }) : t("conversation.to_end")}
        </button>
      )}
    </div>
  )
}

/** How many rows came below the last one that was there when the end was in sight. */
function useUnread(rows: Row[], atEnd: boolean): number {
  const last = rows.at(-1)?.key
  const [seen, setSeen] = useState(last)
  useEffect(() => {
    if (atEnd) setSeen(last)
  }, [atEnd, last])
  const at = rows.findLastIndex((row) => row.key === seen)
  return at < 0 ? 0 : rows.length - 1 - at
}

/**
 * Whoever reads the end still does when the window or the composer changes its height, which is no scrolling; and
 * whoever sends a message wants to see it.
 */
function useStaysAtEnd(
  scroller: RefObject<HTMLElement | null>,
  list: { isAtEnd: (threshold: number) => boolean; scrollToEnd: () => void },
  last: Row | undefined,
) {
  const atEnd = useRef(true)
  useEffect(() => {
    const resized = new ResizeObserver(() => atEnd.current && list.scrollToEnd())
    resized.observe(scroller.current!)
    return () => resized.disconnect()
  }, [list, scroller])
  const sent = last?.type === "pending" ? last.key : null
  useEffect(() => {
    if (sent) list.scrollToEnd()
  }, [list, sent])
  return () => void (atEnd.current = list.isAtEnd(near))
}

/** A thread opens at its end. */
function useOpenAtEnd(list: { scrollToEnd: () => void }, rows: number) {
  const opened = useRef(false)
  useEffect(() => {
    if (opened.current || rows === 0) return
    opened.current = true
    list.scrollToEnd()
  }, [list, rows])
}
