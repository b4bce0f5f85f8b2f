import { useQuery } from "@tanstack/react-query"
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import { useTranslation } from "react-i18next"
import { useSend } from "../api/query"
import { useFormat } from "../i18n/format"
import { useSpace } from "../space/scope"
import { mayWork, spaceName } from "../space/space"
import { Button } from "../ui/button"
import { Dialog } from "../ui/dialog"
import { Icon } from "../ui/icon"
import { rowClass, rowLinkClass, Rows } from "../ui/list"
import { Empty, Loaded, PageHead } from "../ui/page"
import { AgentForm } from "./form"
import { type AgentBody, agentsChanged, agentsQuery, createAgent } from "./query"

const route = getRouteApi("/app/s/$space/agents")

export function AgentList() {
  const { t } = useTranslation()
  const format = useFormat()
  const space = useSpace()
  const search = route.useSearch()
  const navigate = useNavigate({ from: "/s/$space/agents" })
  const agents = useQuery(agentsQuery(space.space_id))
  const setNew = (open: boolean) => void navigate({ search: { new: open || undefined }, replace: !open })
  const create = mayWork(space) && (
    <Button kind="primary" onClick={() => setNew(true)}>
      <Icon name="plus" />
      {t("agent.create")}
    </Button>
  )
  return (
    <>
      <PageHead title={t("agent.title")}>{agents.data?.length ? create : null}</PageHead>
      <Loaded of={agents}>
        {agents.data?.length === 0 ? (
          <Empty icon="agent" title={t("agent.none.title")} action={create || undefined}>
            {t("agent.none.about")}
          </Empty>
        ) : (
          <Rows label={t("agent.title")}>
            {agents.data?.map((a) => (
              <li key={a.agent_id} className={rowClass}>
                <Icon name="agent" className="text-muted" />
                <Link data-row to="/s/$space/agents/$id" params={{ space: spaceName(space), id: a.agent_id }} className={rowLinkClass}>
                  {a.name ?? t("ui.erased")}
                </Link>
                <span className="ml-auto max-w-32 truncate font-mono text-xs text-muted">{a.model}</span>
                <span className="hidden text-xs whitespace-nowrap text-muted sm:inline">{t("agent.revision", { number: format.number(a.revision) })}</span>
                <time dateTime={a.revised_at} title={format.dateTime(a.revised_at)} className="hidden w-20 text-right text-xs whitespace-nowrap text-muted sm:inline">
                  {format.ago(a.revised_at)}
                </time>
              </li>
            ))}
          </Rows>
        )}
      </Loaded>
      <Dialog wide open={search.new === true && mayWork(space)} onClose={() => setNew(false)} title={t("agent.create")}>
        <Create onDone={(id) => void navigate({ to: "/s/$space/agents/$id", params: { space: spaceName(space), id } })} onCancel={() => setNew(false)} />
      </Dialog>
    </>
  )
}

function Create({ onDone, onCancel }: { onDone: (id: string) => void; onCancel: () => void }) {
  const { t } = useTranslation()
  const { space_id } = useSpace()
  const { send, sending, problem } = useSend(
    (body: AgentBody, key) => createAgent(space_id, body, key),
    async (made) => {
      await agentsChanged(space_id)
      onDone(made.agent_id)
    },
  )
  return <AgentForm submit={t("agent.create")} busy={sending} problem={problem} onSubmit={send} onCancel={onCancel} />
}
