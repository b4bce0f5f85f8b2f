import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useMemo } from "react"
import { useTranslation } from "react-i18next"
import { useFormat } from "../i18n/format"
import { Copy } from "../ui/copy"
import { Empty, Loaded } from "../ui/page"
import { isActive } from "../ui/state"
import { type Control, readReport, type Report } from "./boundary"
import type { TabProps } from "./page"
import { boundaryQuery } from "./query"

const known = ["user_namespace", "mount_namespace", "pid_namespace", "net_namespace", "ipc_namespace", "uts_namespace", "pivot_root", "readonly_system", "overlay_workspace", "no_network", "rlimits", "cgroup_kill", "no_new_privs", "capabilities_dropped"] as const

export function BoundaryTab({ run, log }: TabProps) {
  const { t } = useTranslation()
  const base = boundaryQuery(run.run_id)
  const prepared = log.run?.sandboxEpoch ?? 0
  const query = useQuery({ ...base, queryKey: [...base.queryKey, prepared] })
  const report = useMemo(() => readReport(query.data?.report), [query.data])
  return (
    <div className="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label={t("run.tab.boundary")}>
      <Loaded of={query}>
        {report ? (
          <Shown report={report} raw={JSON.stringify(query.data?.report, null, 2)} />
        ) : (
          <Empty icon="task" title={t("run.boundary.none.title")}>
            {isActive(run.state) ? t("run.boundary.none.yet") : t("run.boundary.none.never")}
          </Empty>
        )}
      </Loaded>
    </div>
  )
}

function Shown({ report, raw }: { report: Report; raw: string }) {
  const { t } = useTranslation()
  const format = useFormat()
  return (
    <div className="flex max-w-5xl flex-col gap-5 px-4 py-4 sm:px-6">
      <div className="flex flex-col gap-1">
        <p className="text-lg font-semibold">{report.grade ? t("run.boundary.grade", { grade: report.grade }) : t("run.boundary.no_grade")}</p>
        {!report.grade && <p className="text-sm text-muted">{t("run.grade_unknown")}</p>}
        <p className={report.missing > 0 ? "font-medium text-bad" : "text-muted"}>{report.missing > 0 ? t("run.boundary.missing", { count: report.missing }) : t("run.boundary.all", { count: report.controls.length })}</p>
      </div>
      {report.refusals.length > 0 && (
        <Part title={t("run.boundary.refusals")}>
          <ul className="list-disc pl-5 text-sm">
            {report.refusals.map((r, i) => (
              <li key={i} className="font-mono text-xs break-all">
                {r}
              </li>
            ))}
          </ul>
        </Part>
      )}
      <Controls controls={report.controls} />
      <Part title={t("run.boundary.facts")}>
        <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-sm">
          {report.facts.map(([name, value]) => (
            <Pair key={name} name={name} value={String(value)} />
          ))}
        </dl>
      </Part>
      {report.phases.length > 0 && (
        <Part title={t("run.boundary.phases")}>
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-sm">
            {report.phases.map((p) => (
              <Pair key={p.name} name={p.name} value={format.duration(p.ms)} />
            ))}
          </dl>
        </Part>
      )}
      <details>
        <summary className="w-fit rounded-sm text-sm font-medium">{t("run.boundary.raw")}</summary>
        <div className="mt-2 flex flex-col items-start gap-2">
          <Copy text={raw} />
          <pre tabIndex={0} aria-label={t("run.boundary.raw")} className="max-h-96 w-full overflow-auto rounded-md border bg-sunken p-3 font-mono text-xs leading-4">
            {raw}
          </pre>
        </div>
      </details>
    </div>
  )
}

const Part = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className="flex flex-col gap-2">
    <h2 className="font-semibold">{title}</h2>
    {children}
  </section>
)

const Pair = ({ name, value }: { name: string; value: string }) => (
  <>
    <dt className="font-mono text-xs leading-5 text-muted">{name}</dt>
    <dd className="min-w-0 break-words">{value}</dd>
  </>
)

function Controls({ controls }: { controls: Control[] }) {
  const { t } = useTranslation()
  const about = (name: string) => {
    const found = known.find((k) => k === name)
    return found && t(`run.control.${found}`)
  }
  return (
    <table className="w-full text-left text-sm">
      <caption className="sr-only">{t("run.boundary.controls")}</caption>
      <thead className="text-xs text-muted">
        <tr className="border-b">
          <th className="py-1 pr-3 font-normal">{t("run.boundary.control")}</th>
          <th className="w-16 py-1 pr-3 font-normal sm:w-24">{t("run.boundary.asked")}</th>
          <th className="w-16 py-1 pr-3 font-normal sm:w-24">{t("run.boundary.installed")}</th>
          <th className="w-20 py-1 font-normal sm:w-32">{t("run.boundary.observed")}</th>
        </tr>
      </thead>
      <tbody>
        {controls.map((c) => (
          <tr key={c.name} className={`border-b align-top ${c.missing ? "bg-bad-soft" : ""}`}>
            <th scope="row" className="py-1.5 pr-3 font-normal">
              <code className="font-mono text-xs break-words">{c.name}</code>
              {c.missing && <span className="ml-2 text-xs font-medium text-bad">{t("run.boundary.is_missing")}</span>}
              {about(c.name) && <span className="block text-xs text-muted">{about(c.name)}</span>}
              {c.reason && <span className="block text-xs break-words text-warn">{c.reason}</span>}
            </th>
            <td className="py-1.5 pr-3">
              <Said value={c.asked} />
            </td>
            <td className="py-1.5 pr-3">
              <Said value={c.installed} />
            </td>
            <td className="py-1.5">{c.observed === null ? <span className="text-warn" title={c.reason || undefined}>{t("run.boundary.not_observed")}</span> : <Said value={c.observed} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Yes, no, a value, or that nobody knows: in words and with a shape. */
function Said({ value }: { value: string | boolean | null }) {
  const { t } = useTranslation()
  if (value === null) return <span className="text-muted">{t("run.boundary.unknown")}</span>
  if (typeof value === "string") return <span>{value}</span>
  return (
    <span className={`inline-flex items-center gap-1 ${value ? "text-ok" : "text-bad"}`}>
      <svg aria-hidden="true" viewBox="0 0 16 16" className="size-3.5" fill="none" stroke="currentColor" strokeWidth="1.8" strokeLinecap="round">
        <path d={value ? "M3.5 8.5l3 3 6-7" : "M4.5 4.5l7 7M11.5 4.5l-7 7"} />
      </svg>
      {value ? t("run.boundary.yes") : t("run.boundary.no")}
    </span>
  )
}
