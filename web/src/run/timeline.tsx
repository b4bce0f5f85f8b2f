import { Link } from "@tanstack/react-router"
import { useVirtualizer } from "@tanstack/react-virtual"
import { useMemo, useRef } from "react"
import { useTranslation } from "react-i18next"
import { useFormat } from "../i18n/format"
import { Skeleton } from "../ui/page"
import { useNow } from "./head"
import type { TabProps } from "./page"
import { type Span, type SpanKind, timeline, type Timeline } from "./span"

/** Kinds differ by their shape: full what the model does, framed what tools do, dashed what waits, low what prepares. */
const look: Record<SpanKind, string> = {
  queued: "h-3 border border-dashed border-edge",
  starting: "h-3 border border-dotted border-edge",
  sandbox: "h-1.5 bg-edge",
  model: "h-3 bg-accent",
  tool: "h-3 border-2 border-accent bg-accent-soft",
  changes: "h-1.5 bg-edge",
}
const bad = new Set(["error", "timeout", "cancelled", "in_doubt"])
const columns = "grid grid-cols-[minmax(0,1fr)_4.5rem_5.5rem] gap-x-3 sm:grid-cols-[minmax(8rem,14rem)_4.5rem_5.5rem_7rem_minmax(0,1fr)]"

/** What took how long. It is one table: each row has its bar, and everything that the bar says stands beside it. */
export function TimelineTab({ run, log }: TabProps) {
  const { t } = useTranslation()
  const line = useMemo(() => timeline(log.events), [log.events])
  if (!line) return log.phase === "loading" ? <Skeleton /> : <p className="px-4 py-6 text-sm text-muted sm:px-6">{t("run.event.none")}</p>
  return <Table line={line} run={run.run_id} />
}

function Table({ line, run }: { line: Timeline; run: string }) {
  const { t } = useTranslation()
  const format = useFormat()
  const now = useNow(line.running, 250)
  const scroller = useRef<HTMLDivElement>(null)
  const to = line.running ? Math.max(line.to, now) : line.to
  const list = useVirtualizer({ count: line.spans.length, getScrollElement: () => scroller.current, estimateSize: () => 36, getItemKey: (i) => line.spans[i]!.key, overscan: 12 })
  return (
    <>
      <p className="flex flex-wrap gap-x-4 gap-y-1 px-4 pt-3 pb-2 text-xs text-muted sm:px-6" aria-hidden="true">
        {(["model", "tool", "queued", "sandbox"] as const).map((kind) => (
          <span key={kind} className="inline-flex items-center gap-1.5">
            <span className={`w-6 rounded-sm ${look[kind]}`} />
            {t(`run.span.${kind}`)}
          </span>
        ))}
        <span className="ml-auto tabular-nums">{t("run.in_all", { time: format.duration(to - line.from) })}</span>
      </p>
      <div ref={scroller} tabIndex={0} role="region" aria-label={t("run.tab.timeline")} className="min-h-0 flex-1 overflow-y-auto">
        <div role="table" aria-label={t("run.tab.timeline")} aria-rowcount={line.spans.length + 1}>
          <div role="rowgroup" className="sticky top-0 z-10 border-b bg-canvas">
            <div role="row" aria-rowindex={1} className={`${columns} px-4 py-1 text-xs text-muted sm:px-6`}>
              <span role="columnheader">{t("run.column.what")}</span>
              <span role="columnheader" className="text-right">
                {t("run.column.start")}
              </span>
              <span role="columnheader" className="text-right">
                {t("run.column.took")}
              </span>
              <span role="columnheader" className="hidden text-right sm:block">
                {t("run.fact.tokens")}
              </span>
              <span role="columnheader" className="hidden sm:block">
                {t("run.column.bar")}
              </span>
            </div>
          </div>
          <div role="rowgroup" className="relative" style={{ height: list.getTotalSize() }}>
            {list.getVirtualItems().map((item) => (
              <div key={item.key} ref={list.measureElement} data-index={item.index} role="row" aria-rowindex={item.index + 2} className={`${columns} absolute top-0 left-0 w-full items-center border-b px-4 py-2 text-sm hover:bg-hover sm:px-6`} style={{ transform: `translateY(${item.start}px)` }}>
                <Row span={line.spans[item.index]!} from={line.from} to={to} now={now} run={run} />
              </div>
            ))}
          </div>
        </div>
      </div>
    </>
  )
}

function Row({ span, from, to, now, run }: { span: Span; from: number; to: number; now: number; run: string }) {
  const { t } = useTranslation()
  const format = useFormat()
  const end = span.to ?? Math.max(now, span.from)
  const took = span.tookMs ?? end - span.from
  const share = (ms: number) => `${((ms / (to - from)) * 100).toFixed(3)}%`
  const name = span.kind === "tool" ? span.name : span.kind === "model" ? t("run.model_step", { number: span.step }) : t(`run.span.${span.kind}`)
  const word = span.to === null ? t("run.going_on") : span.open ? t("run.end_unknown") : span.outcome && bad.has(span.outcome) ? t(`run.outcome.${span.outcome as "error"}`) : null
  return (
    <>
      <span role="cell" className="flex min-w-0 items-baseline gap-2">
        <Link to="/runs/$run" params={{ run }} search={{ tab: "events", position: span.position }} className={`truncate rounded-sm hover:underline ${span.kind === "tool" ? "font-mono text-xs" : ""}`}>
          {name}
        </Link>
        {word && <span className={`shrink-0 text-xs ${span.to === null ? "text-accent" : "text-warn"}`}>{word}</span>}
      </span>
      <span role="cell" className="text-right text-xs text-muted tabular-nums">
        +{format.duration(span.from - from)}
      </span>
      <span role="cell" className="text-right text-xs tabular-nums">
        {format.duration(took)}
      </span>
      <span role="cell" className="hidden text-right text-xs text-muted tabular-nums sm:block">
        {span.kind === "model" && span.to !== null ? <Tokens span={span} /> : <span className="sr-only">{t("run.no_tokens")}</span>}
      </span>
      <span role="cell" className="relative col-span-3 mt-1 h-3 sm:col-span-1 sm:mt-0">
        <span className="sr-only">{span.firstToken !== null ? t("run.first_token", { time: format.duration(span.firstToken - span.from) }) : name}</span>
        <span aria-hidden="true" className={`absolute top-1/2 min-w-1 -translate-y-1/2 rounded-sm ${look[span.kind]} ${span.to === null ? "rounded-r-none border-r-0 [mask-image:linear-gradient(to_right,black_60%,transparent)]" : ""}`} style={{ left: share(span.from - from), width: share(end - span.from) }} />
        {span.firstToken !== null && <span aria-hidden="true" title={t("run.first_token", { time: format.duration(span.firstToken - span.from) })} className="absolute top-0 h-3 w-0.5 bg-text" style={{ left: share(span.firstToken - from) }} />}
      </span>
    </>
  )
}

function Tokens({ span }: { span: Span }) {
  const { t } = useTranslation()
  const format = useFormat()
  const count = (n: number | null) => (n === null ? <span title={t("run.unknown_tokens")}>–</span> : format.number(n))
  return (
    <>
      {count(span.input)} / {count(span.output)}
    </>
  )
}
