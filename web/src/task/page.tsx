import { useQuery } from "@tanstack/react-query"
import { getRouteApi, Link } from "@tanstack/react-router"
import { type FormEvent, useState } from "react"
import { useTranslation } from "react-i18next"
import { useAgentName } from "../agent/choose"
import type { Schema } from "../api/client"
import { problemOf } from "../api/problem"
import { usePages, useSend } from "../api/query"
import { useSourceName } from "../file/source_field"
import { useFormat } from "../i18n/format"
import { NotFound } from "../shell/missing"
import { useActor } from "../space/member"
import { useSpace } from "../space/scope"
import { mayWork, spaceName } from "../space/space"
import { Button } from "../ui/button"
import { Dialog } from "../ui/dialog"
import { TextArea } from "../ui/field"
import { rowClass, rowLinkClass, Rows } from "../ui/list"
import { Loaded, PageHead } from "../ui/page"
import { ProblemNote } from "../ui/problem"
import { State } from "../ui/state"
import { cancelTask, startAttempt, type Task, taskChanged, taskQuery, taskRuns } from "./query"

const route = getRouteApi("/app/s/$space/tasks/$id")

/** While an attempt is active the page asks again, in milliseconds. */
const again = 2000

export function TaskPage() {
  const { t } = useTranslation()
  const space = useSpace()
  const { id } = route.useParams()
  const query = useQuery({ ...taskQuery(id), refetchInterval: (q) => (q.state.data?.active_run_id ? again : false) })
  const task = query.data
  if (query.error && problemOf(query.error).status === 404) return <NotFound />
  return (
    <>
      <PageHead
        title={task ? (task.title ?? t("ui.erased")) : t("task.one")}
        above={
          <Link to="/s/$space/tasks" params={{ space: spaceName(space) }} className="text-sm text-muted hover:underline">
            {t("task.title")}
          </Link>
        }
      >
        {task && mayWork(space) && <Actions task={task} />}
      </PageHead>
      <Loaded of={query}>{task && <Facts task={task} />}</Loaded>
      {task && <Attempts key={task.version} task={task} />}
    </>
  )
}

function Facts({ task }: { task: Task }) {
  const { t } = useTranslation()
  const format = useFormat()
  const space = useSpace()
  const agentName = useAgentName(space.space_id)
  const sourceName = useSourceName()
  const actor = useActor()
  return (
    <div className="flex flex-col gap-4 px-4 pb-6 sm:px-6">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-sm text-muted">
        <span role="status" className="flex">
          <State of={task.state} />
        </span>
        <Link to="/s/$space/agents/$id" params={{ space: spaceName(space), id: task.agent_id }} className="hover:underline">
          {agentName(task.agent_id)}
        </Link>
        <code className="font-mono text-xs">{task.model}</code>
        <span>{sourceName(task.source)}</span>
        <span>{t("task.opened", { name: actor(task.opened_by), when: format.dateTime(task.opened_at) })}</span>
      </div>
      <pre className="max-h-72 max-w-4xl overflow-auto rounded-md border bg-surface p-3 font-sans text-base break-words whitespace-pre-wrap" tabIndex={0} aria-label={t("task.prompt")}>
        {task.prompt ?? t("ui.erased")}
      </pre>
    </div>
  )
}

function Actions({ task }: { task: Task }) {
  const { t } = useTranslation()
  const { space_id } = useSpace()
  const [continuing, setContinuing] = useState(false)
  const then = () => {
    setContinuing(false)
    return taskChanged(space_id, task.task_id)
  }
  const cancel = useSend((_: null, key) => cancelTask(task.task_id, key), then)
  const start = useSend((body: { mode: "continue" | "retry"; prompt?: string }, key) => startAttempt(task.task_id, body, key), then)
  const problem = cancel.problem ?? (continuing ? null : start.problem)
  return (
    <>
      {task.active_run_id ? (
        <Button kind="danger" busy={cancel.sending} onClick={() => cancel.send(null)}>
          {t("task.cancel")}
        </Button>
      ) : (
        <>
          <Button busy={start.sending} onClick={() => start.send({ mode: "retry" })}>
            {t("task.retry")}
          </Button>
          <Button kind="primary" onClick={() => setContinuing(true)}>
            {t("task.continue")}
          </Button>
        </>
      )}
      {problem && (
        <div className="w-full">
          <ProblemNote problem={problem} />
        </div>
      )}
      <Dialog open={continuing} onClose={() => setContinuing(false)} title={t("task.continue")}>
        <Continue busy={start.sending} problem={start.problem} onSend={(prompt) => start.send({ mode: "continue", prompt })} />
      </Dialog>
    </>
  )
}

function Continue({ busy, problem, onSend }: { busy: boolean; problem: ReturnType<typeof problemOf> | null; onSend: (prompt: string) => void }) {
  const { t } = useTranslation()
  const [prompt, setPrompt] = useState("")
  const submit = (e?: FormEvent) => {
    e?.preventDefault()
    if (prompt.trim() && !busy) onSend(prompt)
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <TextArea label={t("task.next_prompt")} hint={t("task.continue_about")} required rows={6} value={prompt} onChange={(e) => setPrompt(e.target.value)} onKeyDown={(e) => (e.ctrlKey || e.metaKey) && e.key === "Enter" && submit()} data-first />
      {problem && <ProblemNote problem={problem} />}
      <Button type="submit" kind="primary" busy={busy} className="self-end">
        {t("task.start")}
      </Button>
    </form>
  )
}

/** Every attempt at the task, and what each came from. */
function Attempts({ task }: { task: Task }) {
  const { t } = useTranslation()
  const pages = usePages(["task", task.task_id, "runs"], (cursor) => taskRuns(task.task_id, cursor))
  return (
    <section>
      <h2 className="px-4 pb-2 text-lg font-semibold sm:px-6">{t("task.all_attempts")}</h2>
      <Loaded of={pages} rows={2}>
        <Rows label={t("task.all_attempts")} paged={pages}>
          {pages.items.map((run) => (
            <Attempt key={run.run_id} run={run} all={pages.items} />
          ))}
        </Rows>
      </Loaded>
    </section>
  )
}

type Run = Schema["Run"]

function Attempt({ run, all }: { run: Run; all: Run[] }) {
  const { t } = useTranslation()
  const format = useFormat()
  const number = (id: string | null) => all.find((r) => r.run_id === id)?.attempt
  const from = number(run.continues)
  const like = number(run.retry_of)
  const took = run.started_at && run.ended_at ? format.duration(Date.parse(run.ended_at) - Date.parse(run.started_at)) : null
  const told = run.answer ?? run.failure_message ?? run.failure_code
  return (
    <li className={rowClass}>
      <div className="flex min-w-0 flex-1 flex-col gap-0.5">
        <div className="flex min-w-0 flex-wrap items-center gap-x-3">
          <Link data-row to="/runs/$run" params={{ run: run.run_id }} className={rowLinkClass}>
            {t("task.attempt", { number: run.attempt })}
          </Link>
          <State of={run.state} />
          <span className="text-xs text-muted">
            {from !== undefined ? t("task.continues", { number: from }) : like !== undefined ? t("task.retries", { number: like }) : t("task.first")}
          </span>
        </div>
        {told && <p className="truncate text-sm text-muted">{told}</p>}
      </div>
      <span className="flex shrink-0 flex-col items-end text-xs whitespace-nowrap text-muted">
        <time dateTime={run.queued_at} title={format.dateTime(run.queued_at)}>
          {format.ago(run.queued_at)}
        </time>
        {took && <span>{took}</span>}
      </span>
    </li>
  )
}
