import { useTranslation } from "react-i18next"
import { isErased, type Text } from "../fold/data"
import { ended, type Call, type Run } from "../fold/run"
import { useFormat } from "../i18n/format"
import { Output } from "./output"

type Look = "asked" | "under_way" | "unknown" | "never" | "ok" | "error" | "timeout" | "cancelled" | "in_doubt"

/** A call that was made under an earlier claim, or when its run ended, and never returned: nobody knows its end. */
function lookOf(call: Call, run: Run): Look {
  if (call.state === "returned") return call.outcome as Look
  if (call.state === "asked") return ended(run.status) ? "never" : "asked"
  return ended(run.status) || call.calledEpoch < run.epoch || run.status === "queued" ? "unknown" : "under_way"
}

const shape: Record<Look, string> = {
  asked: "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3",
  under_way: "M8 3a5 5 0 0 1 5 5",
  unknown: "M6.3 6a1.8 1.8 0 1 1 2.5 1.7c-.6.3-.8.7-.8 1.4M8 11.4v.1",
  never: "M4 8h8",
  ok: "M3.5 8.5l3 3 6-7",
  error: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  timeout: "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3M8 5.5V8l2 1.5",
  cancelled: "M4 8h8",
  in_doubt: "M6.3 6a1.8 1.8 0 1 1 2.5 1.7c-.6.3-.8.7-.8 1.4M8 11.4v.1",
}
const colour: Partial<Record<Look, string>> = {
  ok: "text-ok",
  error: "text-bad",
  timeout: "text-warn",
  in_doubt: "text-warn",
  unknown: "text-warn",
  under_way: "text-accent",
}

/** A tool call as it happens: what is asked, whether it runs, and what it came to. */
export function CallRow({ call, run }: { call: Call; run: Run }) {
  const { t } = useTranslation()
  const format = useFormat()
  const look = lookOf(call, run)
  const name = t(`conversation.call.${look}`)
  return (
    <div className="my-1 overflow-hidden rounded-md border bg-surface">
      <div className="flex items-start gap-2 px-3 py-1.5 text-sm">
        <span className={`flex h-5 items-center gap-1.5 ${colour[look] ?? "text-muted"}`}>
          <svg
            aria-hidden="true"
            viewBox="0 0 16 16"
            className={`size-4 ${look === "under_way" ? "animate-turn" : ""}`}
            fill="none"
            stroke="currentColor"
            strokeWidth="1.5"
            strokeLinecap="round"
          >
            <path d={shape[look] ?? shape.unknown} />
          </svg>
          <span className="text-xs whitespace-nowrap">{name}</span>
        </span>
        <span className="font-mono text-xs leading-5">{call.tool}</span>
        <Arguments text={call.arguments} />
        <span className="ml-auto flex gap-2 text-xs leading-5 whitespace-nowrap text-muted tabular-nums">
          {call.exitCode !== null && call.exitCode !== 0 && <span>{t("conversation.exit", { code: call.exitCode })}</span>}
          {call.durationUs !== null && <span>{format.duration(call.durationUs / 1000)}</span>}
        </span>
      </div>
      {call.state === "returned" && <Result call={call} />}
    </div>
  )
}

function Result({ call }: { call: Call }) {
  const { t } = useTranslation()
  if (isErased(call.output)) return <p className="border-t px-3 py-1.5 text-sm text-muted">{t("conversation.erased")}</p>
  if (!call.output) return null
  return <Output text={call.output} bytes={call.truncated ? call.outputBytes : null} name={`${call.tool}-${call.id}.txt`} />
}

/** The one argument that says most, in one line; the rest on demand by hovering, and in the events. */
function Arguments({ text }: { text: Text }) {
  const { t } = useTranslation()
  if (isErased(text)) return <span className="text-muted">{t("conversation.erased")}</span>
  const shown = mainArgument(text ?? "")
  return (
    <code className="min-w-0 truncate font-mono text-xs leading-5" title={text ?? ""}>
      {shown}
    </code>
  )
}

function mainArgument(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === "object" && parsed !== null) {
      const { command, path, pattern } = parsed as Record<string, unknown>
      const main = command ?? path ?? pattern
      if (typeof main === "string") return main
    }
  } catch {
    // A model may write what is no JSON: it is shown as it is.
  }
  return text
}
