import { useQuery } from "@tanstack/react-query"
import { useVirtualizer } from "@tanstack/react-virtual"
import { useMemo, useRef } from "react"
import { useTranslation } from "react-i18next"
import { useFormat } from "../i18n/format"
import { Copy } from "../ui/copy"
import { Loaded } from "../ui/page"
import { Lines } from "./changes"
import { type DiffLine, readDiff } from "./diff"
import { type Change, diffQuery } from "./query"

/** Characters of one line that are shown; the copy has all of them. */
const widest = 4000
const sign: Record<DiffLine["kind"], string> = { hunk: " ", same: " ", added: "+", removed: "-", note: " " }
const ground: Record<DiffLine["kind"], string> = { hunk: "bg-sunken text-muted", same: "", added: "bg-ok-soft", removed: "bg-bad-soft", note: "text-muted" }

/** What happened to one file: to read, not to change. */
export function DiffView({ run, change }: { run: string; change: Change }) {
  const { t } = useTranslation()
  const query = useQuery({ ...diffQuery(run, change.path), enabled: change.diff })
  return (
    <section aria-label={change.path} className="flex min-h-0 min-w-0 flex-1 flex-col">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b px-4 py-2 text-sm">
        <h2 className="min-w-0 font-mono text-xs break-all">
          {change.old_path !== null && <span className="text-muted">{change.old_path} → </span>}
          {change.path}
        </h2>
        <span className="text-xs text-muted">{t(`run.change.${change.change}`)}</span>
        <Sizes change={change} />
        <Lines added={change.lines_added} removed={change.lines_removed} />
        {query.data && <Copy text={query.data.diff} label={t("run.changes.copy")} />}
      </header>
      {!change.diff ? (
        <p className="px-4 py-6 text-sm text-muted">{change.binary ? t("run.changes.binary") : change.change === "renamed" || change.change === "mode" ? t("run.changes.same_content") : t("run.changes.no_diff")}</p>
      ) : (
        <Loaded of={query}>
          {query.data?.truncated && <p className="bg-warn-soft px-4 py-1.5 text-sm text-warn">{t("run.changes.diff_truncated")}</p>}
          {query.data && <LinesOf diff={query.data.diff} label={t("run.changes.diff_of", { path: change.path })} />}
        </Loaded>
      )}
    </section>
  )
}

function Sizes({ change: c }: { change: Change }) {
  const { t } = useTranslation()
  const format = useFormat()
  const size = (n: number | null) => (n === null ? "–" : format.bytes(n))
  return (
    <span className="flex flex-wrap gap-x-3 text-xs text-muted">
      {c.size_before !== c.size_after && <span title={t("run.changes.size")}>{c.size_before === null ? size(c.size_after) : c.size_after === null ? size(c.size_before) : `${size(c.size_before)} → ${size(c.size_after)}`}</span>}
      {c.mode_before !== c.mode_after && c.mode_before !== null && c.mode_after !== null && <code className="font-mono" title={t("run.changes.mode")}>{`${c.mode_before} → ${c.mode_after}`}</code>}
    </span>
  )
}

function LinesOf({ diff, label }: { diff: string; label: string }) {
  const lines = useMemo(() => readDiff(diff), [diff])
  const width = useMemo(() => lines.reduce((most, l) => Math.max(most, Math.min(l.text.length, widest)), 0), [lines])
  const scroller = useRef<HTMLDivElement>(null)
  const list = useVirtualizer({ count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => 20, overscan: 30 })
  const digits = Math.max(2, String(lines.reduce((most, l) => Math.max(most, l.new ?? 0, l.old ?? 0), 0)).length)
  return (
    <div id="diff" ref={scroller} tabIndex={0} role="region" aria-label={label} data-lines={lines.length} className="min-h-0 flex-1 overflow-auto bg-surface font-mono text-xs focus-visible:-outline-offset-2">
      <div className="relative min-w-full" style={{ height: list.getTotalSize(), width: `${width + digits * 2 + 8}ch` }}>
        {list.getVirtualItems().map((item) => {
          const line = lines[item.index]!
          return (
            <div key={item.key} className={`absolute top-0 left-0 flex h-5 w-full leading-5 whitespace-pre ${ground[line.kind]}`} style={{ transform: `translateY(${item.start}px)` }}>
              <span aria-hidden="true" className="flex shrink-0 text-muted select-none">
                <span className="pr-1 pl-2 text-right" style={{ width: `${digits + 2}ch` }}>
                  {line.old ?? ""}
                </span>
                <span className="pr-1 text-right" style={{ width: `${digits + 1}ch` }}>
                  {line.new ?? ""}
                </span>
              </span>
              <span className="w-[3ch] shrink-0 text-center select-none">{sign[line.kind]}</span>
              <span>{line.text.length > widest ? `${line.text.slice(0, widest)}…` : line.text}</span>
            </div>
          )
        })}
      </div>
    </div>
  )
}
