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
import { SelectBox, TextArea } from "../ui/field"
import { Icon } from "../ui/icon"
import { rowClass, rowLinkClass, Rows } from "../ui/list"
import { Empty, Loaded, PageHead, ToolBar } from "../ui/page"
import { ProblemNote } from "../ui/problem"
import { SearchQuery } from "../ui/search"
import { State } from "../ui/state"
import { conversationsKey, loadConversations, type Start, startConversation } from "./query"

const route = getRouteApi("/app/s/$space/conversations")

export function ConversationList() {
  const { t } = useTranslation()
  const space = useSpace()
  const { q, agent, state, new: opening } = route.useSearch()
  const navigate = useNavigate({ from: "/s/$space/conversations" })
  const filter = { q, agent, state }
  const pages = usePages(conversationsKey(space.space_id, filter), (cursor) => loadConversations(space.space_id, filter, cursor))
  const filtered = q !== undefined || agent !== undefined || state !== undefined
  const empty = pages.data !== undefined && pages.items.length === 0
  const setNew = (open: boolean) => void navigate({ search: (s) => ({ ...s, new: open || undefined }), replace: !open })
  const create = mayWork(space) && (
    <Button kind="primary" onClick={() => setNew(true)}>
      <Icon name="plus" />
      {t("conversation.list.create")}
    </Button>
  )
  return (
    <>
      <PageHead title={t("conversation.list.title")}>{!empty || filtered ? create : null}</PageHead>
      {(!empty || filtered) && (
        <ToolBar>
          <SearchQuery
            label={t("ui.search_titles")}
            value={q}
            onSearch={(next) => void navigate({ search: (s) => ({ ...s, q: next }), replace: true })}
          />
          <SelectBox
            label={t("ui.state_filter")}
            value={state ?? ""}
            onChange={(e) =>
              void navigate({ search: (s) => ({ ...s, state: (e.target.value || undefined) as typeof state }), replace: true })
            }
          >
            <option value="">{t("ui.any_state")}</option>
            <option value="active">{t("conversation.list.active")}</option>
            <option value="idle">{t("conversation.list.idle")}</option>
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
          <Empty icon="conversation" title={t("conversation.list.none.title")} action={create || undefined}>
            {t("conversation.list.none.about")}
          </Empty>
        )}
      </Loaded>
      <Dialog wide open={opening === true && mayWork(space)} onClose={() => setNew(false)} title={t("conversation.list.create")}>
        <Create
          agent={agent}
          onCancel={() => setNew(false)}
          onDone={(id) => void navigate({ to: "/s/$space/conversations/$id", params: { space: spaceName(space), id } })}
        />
      </Dialog>
    </>
  )
}

function Listing({ pages }: { pages: ReturnType<typeof usePages<Awaited<ReturnType<typeof loadConversations>>["items"][number]>> }) {
  const { t } = useTranslation()
  const format = useFormat()
  const space = useSpace()
  const agentName = useAgentName(space.space_id)
  return (
    <Rows label={t("conversation.list.title")} paged={pages}>
      {pages.items.map((c) => (
        <li key={c.conversation_id} className={rowClass}>
          <Icon name="conversation" className="text-muted" />
          <Link
            data-row
            to="/s/$space/conversations/$id"
            params={{ space: spaceName(space), id: c.conversation_id }}
            className={rowLinkClass}
          >
            {c.title ?? t("ui.erased")}
          </Link>
          <span className="ml-auto flex shrink-0 items-center gap-3 text-xs text-muted">
            {c.active_run_id && <State of="running" />}
            {c.waiting > 0 && <span className="hidden sm:inline">{t("conversation.list.waiting", { count: c.waiting })}</span>}
            <span className="hidden max-w-32 truncate sm:inline">{agentName(c.agent_id)}</span>
            <time dateTime={c.changed_at} title={format.dateTime(c.changed_at)} className="w-20 text-right whitespace-nowrap">
              {format.ago(c.changed_at)}
            </time>
          </span>
        </li>
      ))}
    </Rows>
  )
}

function Create({ agent, onCancel, onDone }: { agent: string | undefined; onCancel: () => void; onDone: (id: string) => void }) {
  const { t } = useTranslation()
  const { space_id } = useSpace()
  const { data: agents } = useQuery(agentsQuery(space_id))
  const [chosen, setChosen] = useState(agent)
  const [source, setSource] = useSource()
  const [message, setMessage] = useState("")
  const agent_id = chosen ?? agents?.[0]?.agent_id
  const { send, sending, problem } = useSend((start: Start, key) => startConversation(space_id, start, key), onDone)
  const submit = (e?: FormEvent) => {
    e?.preventDefault()
    if (agent_id && message.trim() && !sending) send({ agent_id, source, message })
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <AgentField value={agent_id} onChange={setChosen} />
      <SourceField space={space_id} value={source} onChange={setSource} />
      <TextArea
        label={t("conversation.list.message")}
        hint={t("ui.ctrl_enter")}
        required
        rows={6}
        value={message}
        onChange={(e) => setMessage(e.target.value)}
        onKeyDown={(e) => (e.ctrlKey || e.metaKey) && e.key === "Enter" && submit()}
        data-first
      />
      {problem && <ProblemNote problem={problem} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onCancel}>{t("ui.keep")}</Button>
        <Button type="submit" kind="primary" busy={sending} disabled={!agent_id}>
          {t("conversation.list.start")}
        </Button>
      </div>
    </form>
  )
}
