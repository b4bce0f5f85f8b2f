import { useMutation, useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { api, keyed, newKey, ok } from "../api/client"
import { ended, held } from "../fold/run"
import { useFormat } from "../i18n/format"
import { Icon } from "../ui/icon"
import { State } from "../ui/state"
import { tellProblem } from "../ui/toast"
import type { Row } from "./row"
import type { Thread } from "./thread"

type RunRowProps = { row: Extract<Row, { type: "run" }>; thread: Thread; mayWork: boolean }

const small = "inline-flex items-center gap-1 rounded-sm underline underline-offset-2"

/** The line of a run: its state, model, tokens and time, and what can be done with it. */
export function RunRow({ row, thread, mayWork }: RunRowProps) {
  const { t } = useTranslation()
  const format = useFormat()
  const { run, outline, turn } = row
  const status = run?.status ?? outline?.status ?? "queued"
  const asked = useRead(turn.run, run === null && ended(status))
  const model = run?.model ?? asked?.model
  const spent = [run?.inputTokens ?? asked?.input_tokens, run?.outputTokens ?? asked?.output_tokens]
  const known = spent.some((n) => typeof n === "number")
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 pt-2 pb-1 text-xs text-muted">
      <State of={status} />
      {model && <span>{model}</span>}
      {known && <span className="tabular-nums">{t("conversation.tokens", { input: count(spent[0]), output: count(spent[1]) })}</span>}
      <Lasting from={run?.startedAt ?? asked?.started_at} to={run?.endedAt ?? asked?.ended_at} going={held(status)} />
      {run?.cancelRequested && !ended(status) && <span>{t("conversation.stopping")}</span>}
      {run === null && ended(status) && (
        <button type="button" className={small} aria-busy={row.reading || undefined} onClick={() => void thread.readRun(turn.run)}>
          {row.failed !== undefined ? t("conversation.steps_failed") : t("conversation.steps")}
        </button>
      )}
      {mayWork && !ended(status) && <Stop run={turn.run} asked={run?.cancelRequested ?? false} />}
      {mayWork && (status === "failed" || status === "cancelled") && <Retry run={turn.run} />}
      <Link to="/runs/$run" params={{ run: turn.run }} className={small}>
        {t("conversation.run")}
      </Link>
    </div>
  )

  function count(n: number | null | undefined) {
    return typeof n === "number" ? format.number(n) : "?"
  }
}

/** What the line says of a run whose events nobody asked for. */
function useRead(id: string, wanted: boolean) {
  const get = () => ok(api.GET("/api/v1/runs/{run}", { params: { path: { run: id } } }))
  return useQuery({ queryKey: ["run", id], queryFn: get, enabled: wanted, staleTime: Infinity }).data
}

function Stop({ run, asked }: { run: string; asked: boolean }) {
  const { t } = useTranslation()
  const cancel = useMutation({
    mutationFn: (key: string) => ok(api.POST("/api/v1/runs/{run}/cancel", { params: { path: { run }, header: keyed(key) } })),
    onError: tellProblem,
  })
  if (asked) return null
  return (
    <button
      type="button"
      className={small}
      aria-busy={cancel.isPending || undefined}
      onClick={() => cancel.isPending || cancel.mutate(newKey())}
    >
      <Icon name="stop" />
      {t("conversation.stop")}
    </button>
  )
}

/** Asks the same again: a new message, which comes over the live socket like any other. */
function Retry({ run }: { run: string }) {
  const { t } = useTranslation()
  const retry = useMutation({
    mutationFn: (key: string) => ok(api.POST("/api/v1/runs/{run}/retry", { params: { path: { run }, header: keyed(key) }, body: {} })),
    onError: tellProblem,
  })
  return (
    <button
      type="button"
      className={small}
      aria-busy={retry.isPending || undefined}
      onClick={() => retry.isPending || retry.mutate(newKey())}
    >
      <Icon name="again" />
      {t("conversation.ask_again")}
    </button>
  )
}

/** How long it took, or takes: then it counts on, by the reader's clock. */
function Lasting({ from, to, going }: { from: string | null | undefined; to: string | null | undefined; going: boolean }) {
  const format = useFormat()
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (!going) return
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [going])
  if (!from) return null
  const end = to ? Date.parse(to) : going ? now : null
  if (end === null) return null
  const ms = Math.max(0, end - Date.parse(from))
  return <span className="tabular-nums">{format.duration(going ? Math.floor(ms / 1000) * 1000 : ms)}</span>
}
