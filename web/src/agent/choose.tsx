import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { useTranslation } from "react-i18next"
import { useSpace } from "../space/scope"
import { spaceName } from "../space/space"
import { SelectBox, SelectField } from "../ui/field"
import { agentsQuery } from "./query"

/** The name of an agent of a space; the beginning of its id where there is none to read. */
export function useAgentName(space: string): (agent: string) => string {
  const { data } = useQuery(agentsQuery(space))
  return (agent) => data?.find((a) => a.agent_id === agent)?.name ?? agent.slice(0, 8)
}

/** Choosing an agent; without any, the way to the first. */
export function AgentField({ value, onChange }: { value: string | undefined; onChange: (agent: string) => void }) {
  const { t } = useTranslation()
  const space = useSpace()
  const { data: agents } = useQuery(agentsQuery(space.space_id))
  if (agents?.length === 0) {
    return (
      <p className="rounded-md bg-sunken p-3 text-sm">
        {t("agent.needed")}{" "}
        <Link to="/s/$space/agents" params={{ space: spaceName(space) }} search={{ new: true }} className="text-accent underline underline-offset-2">
          {t("agent.create")}
        </Link>
      </p>
    )
  }
  return (
    <SelectField label={t("agent.one")} value={value ?? ""} onChange={(e) => onChange(e.target.value)}>
      {agents?.map((a) => (
        <option key={a.agent_id} value={a.agent_id}>
          {t("agent.with_model", { name: a.name ?? t("ui.erased"), model: a.model })}
        </option>
      ))}
    </SelectField>
  )
}

export function AgentFilter({ value, onChoose }: { value: string | undefined; onChoose: (agent: string | undefined) => void }) {
  const { t } = useTranslation()
  const { space_id } = useSpace()
  const { data: agents } = useQuery(agentsQuery(space_id))
  return (
    <SelectBox label={t("agent.filter")} value={value ?? ""} onChange={(e) => onChoose(e.target.value || undefined)} className="max-w-48">
      <option value="">{t("agent.any")}</option>
      {agents?.map((a) => (
        <option key={a.agent_id} value={a.agent_id}>
          {a.name ?? t("ui.erased")}
        </option>
      ))}
    </SelectBox>
  )
}
