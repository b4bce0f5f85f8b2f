import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { useAgentName } from "../agent/choose"
import { useFormat } from "../i18n/format"
import { findSpace, spaceName, spacesQuery } from "../space/space"
import { taskQuery } from "../task/query"
import { PageHead } from "../ui/page"
import { isActive, State } from "../ui/state"
import { Actions } from "./actions"
import type { LogState } from "./log"
import { conversationTitle, type Run } from "./query"

const linkClass = "rounded-sm underline-offset-2 hover:underline focus-visible:underline"

/** What the run is, where it belongs, and what can be done with it. */
export function Head({ run, log }: { run: Run; log: LogState }) {
  const { t } = useTranslation()
  const spaces = useQuery(spacesQuery).data
  const space = spaces && findSpace(spaces, run.space_id)
  const title = run.task_id ? t("run.attempt", { number: run.attempt }) : run.attempt > 1 ? t("run.turn_attempt", { number: run.attempt }) : t("run.title")
  return (
    <>
      <PageHead title={title} above={space && <Parent run={run} space={spaceName(space)} />}>
        <Actions run={run} space={space} />
      </PageHead>
      <Facts run={run} log={log} space={space && spaceName(space)} />
    </>
  )
}

function Parent({ run, space }: { run: Run; space: string }) {
  const { t } = useTranslation()
  const task = useQuery({ ...taskQuery(run.task_id), enabled: run.task_id !== null }).data
  const conversation = useQuery({ ...conversationTitle(run.conversation_id), enabled: run.conversation_id !== null }).data
  const name = "max-w-full truncate text-sm text-muted hover:underline"
  return run.task_id ? (
    <Link to="/s/$space/tasks/$id" params={{ space, id: run.task_id }} className={name}>
      {t("run.of_task", { title: task ? (task.title ?? t("ui.erased")) : "…" })}
    </Link>
  ) : (
    <Link to="/s/$space/conversations/$id" params={{ space, id: run.conversation_id }} className={name}>
      {t("run.of_conversation", { title: conversation ? (conversation.title ?? t("ui.erased")) : "…" })}
    </Link>
  )
}

function Facts({ run, log, space }: { run: Run; log: LogState; space: string | undefined }) {
  const { t } = useTranslation()
  const format = useFormat()
  const agentName = useAgentName(run.space_id)
  const count = (n: number | null) => (n === null ? <span title={t("run.unknown_tokens")}>–</span> : format.number(n))
  return (
    <dl className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 pb-3 text-sm text-muted sm:px-6">
      <Fact name={t("run.fact.state")}>
        <span role="status">
          <State of={run.state} />
        </span>
        {run.cancel_asked && isActive(run.state) && <span className="ml-2">{t("run.stopping")}</span>}
        {run.failure_code && <code className="ml-2 font-mono text-xs break-all">{run.failure_code}</code>}
      </Fact>
      <Fact name={t("run.fact.agent")}>
        {space ? (
          <Link to="/s/$space/agents/$id" params={{ space, id: run.agent_id }} className={linkClass}>
            {agentName(run.agent_id)}
          </Link>
        ) : (
          agentName(run.agent_id)
        )}
      </Fact>
      <Fact name={t("run.fact.model")}>
        <code className="font-mono text-xs">{run.model}</code>
      </Fact>
      <Fact name={t("run.fact.time")}>
        <time dateTime={run.queued_at} title={t("run.queued_at", { when: format.dateTime(run.queued_at) })}>
          {format.ago(run.queued_at)}
        </time>
        <Lasting run={run} />
      </Fact>
      <Fact name={t("run.fact.tokens")} shown>
        <span className="tabular-nums">
          {count(run.input_tokens)} {t("run.tokens_in")} · {count(run.output_tokens)} {t("run.tokens_out")}
        </span>
      </Fact>
      <Fact name={t("run.fact.boundary")} shown>
        <Link to="/runs/$run" params={{ run: run.run_id }} search={{ tab: "boundary" }} className={linkClass} title={log.run?.grade ? undefined : t(log.run?.sandboxEpoch ? "run.grade_unknown" : "run.no_sandbox_yet")}>
          {log.run?.grade ?? "–"}
        </Link>
      </Fact>
      <Lineage run={run} />
    </dl>
  )
}

/** One thing that is known, with its name: read out, and shown where the value alone does not say what it is. */
function Fact({ name, shown = false, children }: { name: string; shown?: boolean; children: ReactNode }) {
  return (
    <div className="flex min-w-0 items-center gap-1.5">
      <dt className={shown ? "" : "sr-only"}>{name}</dt>
      <dd className="flex min-w-0 items-center">{children}</dd>
    </div>
  )
}

function Lineage({ run }: { run: Run }) {
  const { t } = useTranslation()
  const from = run.continues ?? run.retry_of
  if (!from) return null
  return (
    <Fact name={t("run.fact.lineage")}>
      <Link to="/runs/$run" params={{ run: from }} className={linkClass}>
        {run.continues ? t("run.continues", { id: from.slice(-8) }) : t("run.retry_of", { id: from.slice(-8) })}
      </Link>
    </Fact>
  )
}

/** How long it took, or takes: then it counts on, by the reader's clock. */
function Lasting({ run }: { run: Run }) {
  const format = useFormat()
  const now = useNow(run.started_at !== null && run.ended_at === null, 1000)
  if (!run.started_at) return null
  const ms = Math.max(0, (run.ended_at ? Date.parse(run.ended_at) : now) - Date.parse(run.started_at))
  return <span className="ml-2 tabular-nums">{format.duration(run.ended_at ? ms : Math.floor(ms / 1000) * 1000)}</span>
}

/** The time, as long as something goes on. */
export function useNow(going: boolean, every: number): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (!going) return
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), every)
    return () => clearInterval(timer)
  }, [going, every])
  return now
}
