import { useQuery } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
import { useTranslation } from "react-i18next"
import type { Problem } from "../api/problem"
import { Button } from "../ui/button"
import { CheckField, SelectField, TextArea, TextField } from "../ui/field"
import { ProblemNote } from "../ui/problem"
import { limitNames, limits, standardLimits, tools } from "./limit"
import { type Agent, type AgentBody, modelsQuery } from "./query"

const blank: AgentBody = { name: "", model: "", instructions: "", tools: [...tools], limits: standardLimits }

export const bodyOf = (agent: Agent): AgentBody => ({ name: agent.name ?? "", model: agent.model, instructions: agent.instructions ?? "", tools: agent.tools, limits: agent.limits })

type FormProps = { from?: AgentBody; submit: string; busy: boolean; problem: Problem | null; onSubmit: (body: AgentBody) => void; onCancel: () => void }

/** What an agent is made of, to be filled in. */
export function AgentForm({ from = blank, submit, busy, problem, onSubmit, onCancel }: FormProps) {
  const { t } = useTranslation()
  const { data: models } = useQuery(modelsQuery)
  const [body, setBody] = useState(from)
  const model = body.model || models?.[0] || ""
  const change = (part: Partial<AgentBody>) => setBody((b) => ({ ...b, ...part }))
  const send = (e: FormEvent) => {
    e.preventDefault()
    onSubmit({ ...body, name: body.name.trim(), model })
  }
  // A model that the server no longer has stays what it is until another is chosen.
  const choices = models && model && !models.includes(model) ? [model, ...models] : (models ?? [model])
  return (
    <form onSubmit={send} className="flex flex-col gap-4">
      <TextField label={t("agent.name")} required maxLength={200} value={body.name} onChange={(e) => change({ name: e.target.value })} error={problem?.field("name")} autoFocus />
      <SelectField label={t("agent.model")} hint={model === "demo" ? t("agent.demo") : undefined} value={model} onChange={(e) => change({ model: e.target.value })} error={problem?.field("model")}>
        {choices.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </SelectField>
      <TextArea label={t("agent.instructions")} hint={t("agent.instructions_hint")} rows={8} maxLength={65536} value={body.instructions} onChange={(e) => change({ instructions: e.target.value })} error={problem?.field("instructions")} />
      <fieldset className="flex flex-col gap-1">
        <legend className="pb-1 text-sm font-medium">{t("agent.tools")}</legend>
        <div className="grid gap-x-4 gap-y-1 sm:grid-cols-2">
          {tools.map((tool) => (
            <CheckField
              key={tool}
              label={tool}
              hint={t(`agent.tool.${tool}`)}
              checked={body.tools.includes(tool)}
              onChange={(e) => change({ tools: tools.filter((x) => (x === tool ? e.target.checked : body.tools.includes(x))) })}
            />
          ))}
        </div>
      </fieldset>
      <fieldset className="flex flex-col gap-1">
        <legend className="pb-1 text-sm font-medium">{t("agent.limits")}</legend>
        <div className="grid gap-x-4 gap-y-3 sm:grid-cols-2">
          {limitNames.map((name) => (
            <TextField
              key={name}
              type="number"
              required
              min={1}
              max={limits[name].most}
              label={t(`agent.limit.${name}`)}
              value={String(body.limits[name] || "")}
              onChange={(e) => change({ limits: { ...body.limits, [name]: Number(e.target.value) } })}
              error={problem?.field(`limits.${name}`)}
            />
          ))}
        </div>
      </fieldset>
      {problem && <ProblemNote problem={problem} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onCancel}>{t("ui.keep")}</Button>
        <Button type="submit" kind="primary" busy={busy}>
          {submit}
        </Button>
      </div>
    </form>
  )
}
