import { useQuery } from "@tanstack/react-query"
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useTranslation } from "react-i18next"
import { problemOf } from "../api/problem"
import { usePages, useSend } from "../api/query"
import { useFormat } from "../i18n/format"
import { NotFound } from "../shell/missing"
import { useActor } from "../space/member"
import { useSpace } from "../space/scope"
import { mayWork, spaceName } from "../space/space"
import { Button, buttonClass } from "../ui/button"
import { Dialog } from "../ui/dialog"
import { rowClass, Rows } from "../ui/list"
import { Loaded, PageHead } from "../ui/page"
import { Compare } from "./compare"
import { AgentForm, bodyOf } from "./form"
import { limitNames } from "./limit"
import { type Agent, type AgentBody, agentQuery, agentsChanged, reviseAgent, revisions } from "./query"

const route = getRouteApi("/app/s/$space/agents/$id")

export function AgentPage() {
  const { t } = useTranslation()
  const space = useSpace()
  const { id } = route.useParams()
  const search = route.useSearch()
  const navigate = useNavigate({ from: "/s/$space/agents/$id" })
  const query = useQuery(agentQuery(id))
  const agent = query.data
  const setEdit = (open: boolean) => void navigate({ search: { edit: open || undefined }, replace: !open })
  if (query.error && problemOf(query.error).status === 404) return <NotFound />
  return (
    <>
      <PageHead
        title={agent ? (agent.name ?? t("ui.erased")) : t("agent.one")}
        above={
          <Link to="/s/$space/agents" params={{ space: spaceName(space) }} className="text-sm text-muted hover:underline">
            {t("agent.title")}
          </Link>
        }
      >
        {agent && mayWork(space) && (
          <>
            <Button onClick={() => setEdit(true)}>{t("agent.edit")}</Button>
            <Link to="/s/$space/conversations" params={{ space: spaceName(space) }} search={{ new: true, agent: id }} className={buttonClass("primary")}>
              {t("agent.talk")}
            </Link>
          </>
        )}
      </PageHead>
      <Loaded of={query}>{agent && <Now agent={agent} />}</Loaded>
      {agent && <Revisions agent={agent} />}
      {agent && (
        <Dialog wide open={search.edit === true && mayWork(space)} onClose={() => setEdit(false)} title={t("agent.edit")}>
          <Edit agent={agent} onDone={() => setEdit(false)} />
        </Dialog>
      )}
      {agent && search.from !== undefined && search.to !== undefined && (
        <Dialog wide open onClose={() => void navigate({ search: {}, replace: true })} title={t("agent.compare.title", { from: search.from, to: search.to })}>
          <Compare agent={id} from={search.from} to={search.to} newest={agent.revision} />
        </Dialog>
      )}
    </>
  )
}

/** What the agent is now. */
function Now({ agent }: { agent: Agent }) {
  const { t } = useTranslation()
  const format = useFormat()
  return (
    <div className="grid gap-x-8 gap-y-4 px-4 pb-6 sm:px-6 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
      <section className="min-w-0">
        <h2 className="pb-1 text-sm font-medium text-muted">{t("agent.instructions")}</h2>
        {agent.instructions ? (
          <pre className="max-h-96 overflow-auto rounded-md border bg-surface p-3 font-sans text-base break-words whitespace-pre-wrap" tabIndex={0} aria-label={t("agent.instructions")}>
            {agent.instructions}
          </pre>
        ) : (
          <p className="text-muted">{agent.instructions === null ? t("ui.erased") : t("agent.no_instructions")}</p>
        )}
      </section>
      <dl className="grid content-start gap-x-4 gap-y-2 text-sm">
        <Fact name={t("agent.model")}>
          <code className="font-mono break-all">{agent.model}</code>
        </Fact>
        <Fact name={t("agent.tools")}>{agent.tools.length > 0 ? <code className="font-mono">{agent.tools.join(", ")}</code> : t("agent.no_tools")}</Fact>
        {limitNames.map((name) => (
          <Fact key={name} name={t(`agent.limit.${name}`)}>
            {format.number(agent.limits[name])}
          </Fact>
        ))}
      </dl>
    </div>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt className="text-muted">{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Edit({ agent, onDone }: { agent: Agent; onDone: () => void }) {
  const { t } = useTranslation()
  const { space_id } = useSpace()
  const { send, sending, problem } = useSend(
    (body: AgentBody) => reviseAgent(agent.agent_id, body, agent.revision),
    async () => {
      await agentsChanged(space_id, agent.agent_id)
      onDone()
    },
  )
  return <AgentForm from={bodyOf(agent)} submit={t("agent.save")} busy={sending} problem={problem} onSubmit={send} onCancel={onDone} />
}

/** Every revision that there was; each can be compared with the one before, and with what the agent is now. */
function Revisions({ agent }: { agent: Agent }) {
  const { t } = useTranslation()
  const format = useFormat()
  const actor = useActor()
  const pages = usePages(["agent", agent.agent_id, "revisions"], (cursor) => revisions(agent.agent_id, cursor))
  return (
    <section>
      <h2 className="px-4 pb-2 text-lg font-semibold sm:px-6">{t("agent.revisions")}</h2>
      <Loaded of={pages} rows={2}>
        <Rows label={t("agent.revisions")} paged={pages}>
          {pages.items.map((r) => (
            <li key={r.revision} className={`${rowClass} flex-wrap`}>
              <span className="font-medium">{t("agent.revision", { number: format.number(r.revision) })}</span>
              <span className="text-sm text-muted">
                {actor(r.revised_by)}
                {" · "}
                <time dateTime={r.revised_at}>{format.dateTime(r.revised_at)}</time>
              </span>
              <span className="ml-auto flex flex-wrap gap-3 text-sm">
                {r.revision > 1 && <CompareLink from={r.revision - 1} to={r.revision} text={t("agent.compare.before")} />}
                {r.revision < agent.revision && <CompareLink from={r.revision} to={agent.revision} text={t("agent.compare.now")} />}
              </span>
            </li>
          ))}
        </Rows>
      </Loaded>
    </section>
  )
}

function CompareLink({ from, to, text }: { from: number; to: number; text: string }) {
  return (
    <Link data-row from="/s/$space/agents/$id" to="." search={{ from, to }} className="text-accent underline underline-offset-2">
      {text}
    </Link>
  )
}
