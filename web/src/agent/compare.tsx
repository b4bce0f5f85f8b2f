import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { useTranslation } from "react-i18next"
import { loadAll } from "../api/query"
import { useFormat } from "../i18n/format"
import { SelectField } from "../ui/field"
import { Loaded } from "../ui/page"
import { type Line, lineDiff } from "./diff"
import { limitNames } from "./limit"
import { type Agent, revisions } from "./query"

/** What one revision has and another has not. */
export function Compare({ agent, from, to, newest }: { agent: string; from: number; to: number; newest: number }) {
  const { t } = useTranslation()
  const navigate = useNavigate({ from: "/s/$space/agents/$id" })
  const query = useQuery({ queryKey: ["agent", agent, "revisions", "all", newest], queryFn: () => loadAll((cursor) => revisions(agent, cursor)), staleTime: Infinity })
  const find = (n: number) => query.data?.find((r) => r.revision === n)
  const [a, b] = [find(from), find(to)]
  const choose = (search: { from: number; to: number }) => void navigate({ search, replace: true })
  const options = query.data?.map((r) => <option key={r.revision}>{r.revision}</option>)
  return (
    <Loaded of={query} rows={4}>
      <div className="flex flex-col gap-4">
        <div className="grid grid-cols-2 gap-4">
          <SelectField label={t("agent.compare.from")} value={from} onChange={(e) => choose({ from: Number(e.target.value), to })}>
            {options}
          </SelectField>
          <SelectField label={t("agent.compare.to")} value={to} onChange={(e) => choose({ from, to: Number(e.target.value) })}>
            {options}
          </SelectField>
        </div>
        {a && b ? <Differences a={a} b={b} /> : <p className="text-muted">{t("agent.compare.missing")}</p>}
      </div>
    </Loaded>
  )
}

function Differences({ a, b }: { a: Agent; b: Agent }) {
  const { t } = useTranslation()
  const format = useFormat()
  const facts: [string, string, string][] = [
    [t("agent.name"), a.name ?? t("ui.erased"), b.name ?? t("ui.erased")],
    [t("agent.model"), a.model, b.model],
    [t("agent.tools"), a.tools.join(", "), b.tools.join(", ")],
    ...limitNames.map((name): [string, string, string] => [t(`agent.limit.${name}`), format.number(a.limits[name]), format.number(b.limits[name])]),
  ]
  const changed = facts.filter(([, was, is]) => was !== is)
  const text = (a.instructions ?? "") === (b.instructions ?? "") ? null : lineDiff(a.instructions ?? "", b.instructions ?? "")
  if (changed.length === 0 && !text) return <p className="text-muted">{t("agent.compare.same")}</p>
  return (
    <div className="flex flex-col gap-4">
      {changed.length > 0 && (
        <dl className="flex flex-col gap-3 text-sm">
          {changed.map(([name, was, is]) => (
            <div key={name}>
              <dt className="pb-1 font-medium">{name}</dt>
              <dd>
                <Lines lines={[{ mark: "-", text: was }, { mark: "+", text: is }]} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      {text && (
        <section>
          <h3 className="pb-1 text-sm font-medium">{t("agent.instructions")}</h3>
          <Lines lines={text} />
        </section>
      )}
    </div>
  )
}

const look = { "-": "bg-bad-soft", "+": "bg-ok-soft", " ": "" }

function Lines({ lines }: { lines: Line[] }) {
  const { t } = useTranslation()
  return (
    <ul className="max-h-96 overflow-auto rounded-md border font-mono text-sm" tabIndex={0} aria-label={t("agent.compare.lines")}>
      {lines.map((line, i) => (
        <li key={i} className={`flex gap-2 px-2 ${look[line.mark]}`}>
          <span aria-hidden="true" className="w-3 shrink-0 text-muted select-none">
            {line.mark}
          </span>
          {line.mark !== " " && <span className="sr-only">{line.mark === "-" ? t("agent.compare.gone") : t("agent.compare.added")}</span>}
          <span className="min-w-0 break-words whitespace-pre-wrap">{line.text}</span>
        </li>
      ))}
    </ul>
  )
}
