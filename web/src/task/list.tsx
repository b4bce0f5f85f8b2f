import { useQuery } from "@tanstack/react-query"
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import { type FormEvent, useState } from "react"
import { useTranslation } from "react-i18next"
import { AgentField, AgentFilter, useAgentName } from "../agent/choose"
import { agentsQuery } from "../agent/query"
import { usePages, useSend } from "../api/query"
import { SourceField, useSource } from "../file/source_field"
import { useFormat } from "../i18n/format"
import { useSpace } from "../space/scope"
import { mayWork, spaceName } from "../space/space"
import { Button } from "../ui/button"
import { Dialog } from "../ui/dialog"
import { SelectBox, TextArea, TextField } from "../ui/field"
import { Icon } from "../ui/icon"
import { rowClass, rowLinkClass, Rows } from "../ui/list"
import { Empty, Loaded, PageHead, ToolBar } from "../ui/page"
import { ProblemNote } from "../ui/problem"
import { SearchQuery } from "../ui/search"
import { runStates, State } from "../ui/state"
import { loadTasks, openTask, type TaskBody, tasksKey } from "./query"

const route = getRouteApi("/app/s/$space/tasks")

export function TaskList() {
  const { t } = useTranslation()
  const space = useSpace()
  const { q, agent, state, new: opening } = route.useSearch()
  const navigate = useNavigate({ from: "/s/$space/tasks" })
  const filter = { q, agent, state }
  const pages = usePages(tasksKey(space.space_id, filter), (cursor) => loadTasks(space.space_id, filter, cursor))
  const filtered = q !== undefined || agent !== undefined || state !== undefined
  const empty = pages.data !== undefined && pages.items.length === 0
  const setNew = (open: boolean) => void navigate({ search: (s) => ({ ...s, new: open || undefined }), replace: !open })
  const create = mayWork(space) && (
    <Button kind="primary" onClick={() => setNew(true)}>
      <Icon name="plus" />
      {t("task.create")}
    </Button>
  )
  return (
    <>
      <PageHead title={t("task.title")}>{!empty || filtered ? create : null}</PageHead>
      {(!empty || filtered) && (
        <ToolBar>
          <SearchQuery label={t("ui.search_titles")} value={q} onSearch={(next) => void navigate({ search: (s) => ({ ...s, q: next }), replace: true })} />
          <SelectBox label={t("ui.state_filter")} value={state ?? ""} onChange={(e) => void navigate({ search: (s) => ({ ...s, state: (e.target.value || undefined) as typeof state }), replace: true })}>
            <option value="">{t("ui.any_state")}</option>
            {runStates.map((s) => (
              <option key={s} value={s}>
                {t(`ui.state.${s}`)}
              </option>
            ))}
          </SelectBox>
          <AgentFilter value={agent} onChoose={(next) => void navigate({ search: (s) => ({ ...s, agent: next }), replace: true })} />
        </ToolBar>
      )}
      <Loaded of={pages}>
        {!empty ? (
          <Listing pages={pages} />
        ) : filtered ? (
          <p className="px-4 py-8 text-center text-muted sm:px-6">{t("ui.nothing_found")}</p>
        ) : (
          <Empty icon="task" title={t("task.none.title")} action={create || undefined}>
            {t("task.none.about")}
          </Empty>
        )}
      </Loaded>
      <Dialog wide open={opening === true && mayWork(space)} onClose={() => setNew(false)} title={t("task.create")}>
        <Create onCancel={() => setNew(false)} onDone={(id) => void navigate({ to: "/s/$space/tasks/$id", params: { space: spaceName(space), id } })} />
      </Dialog>
    </>
  )
}

function Listing({ pages }: { pages: ReturnType<typeof usePages<Awaited<ReturnType<typeof loadTasks>>["items"][number]>> }) {
  const { t } = useTranslation()
  const format = useFormat()
  const space = useSpace()
  const agentName = useAgentName(space.space_id)
  return (
    <Rows label={t("task.title")} paged={pages}>
      {pages.items.map((task) => (
        <li key={task.task_id} className={rowClass}>
          <span className="w-6 shrink-0 sm:w-28">
            <span className="sm:hidden">
              <State of={task.state} short />
            </span>
            <span className="hidden sm:inline">
              <State of={task.state} />
            </span>
          </span>
          <Link data-row to="/s/$space/tasks/$id" params={{ space: spaceName(space), id: task.task_id }} className={rowLinkClass}>
            {task.title ?? t("ui.erased")}
          </Link>
          <span className="ml-auto flex shrink-0 items-center gap-3 text-xs text-muted">
            {task.runs > 1 && <span className="hidden sm:inline">{t("task.attempts", { count: task.runs })}</span>}
            <span className="hidden max-w-32 truncate sm:inline">{agentName(task.agent_id)}</span>
            <time dateTime={task.changed_at} title={format.dateTime(task.changed_at)} className="w-20 text-right whitespace-nowrap">
              {format.ago(task.changed_at)}
            </time>
          </span>
        </li>
      ))}
    </Rows>
  )
}

function Create({ onCancel, onDone }: { onCancel: () => void; onDone: (id: string) => void }) {
  const { t } = useTranslation()
  const { space_id } = useSpace()
  const { data: agents } = useQuery(agentsQuery(space_id))
  const [chosen, setChosen] = useState<string>()
  const [source, setSource] = useSource()
  const [title, setTitle] = useState("")
  const [prompt, setPrompt] = useState("")
  const agent_id = chosen ?? agents?.[0]?.agent_id
  const { send, sending, problem } = useSend((body: TaskBody, key) => openTask(space_id, body, key), (made) => onDone(made.task_id))
  const submit = (e?: FormEvent) => {
    e?.preventDefault()
    if (agent_id && title.trim() && prompt.trim() && !sending) send({ agent_id, source, title: title.trim(), prompt })
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <TextField label={t("task.name")} required maxLength={200} value={title} onChange={(e) => setTitle(e.target.value)} error={problem?.field("title")} autoFocus />
      <TextArea label={t("task.prompt")} hint={t("ui.ctrl_enter")} required rows={6} value={prompt} onChange={(e) => setPrompt(e.target.value)} onKeyDown={(e) => (e.ctrlKey || e.metaKey) && e.key === "Enter" && submit()} />
      <AgentField value={agent_id} onChange={setChosen} />
      <SourceField space={space_id} value={source} onChange={setSource} />
      {problem && <ProblemNote problem={problem} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onCancel}>{t("ui.keep")}</Button>
        <Button type="submit" kind="primary" busy={sending} disabled={!agent_id}>
          {t("task.start")}
        </Button>
      </div>
    </form>
  )
}
