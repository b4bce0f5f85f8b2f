// The report of a sandbox, as docs/operations/sandbox.md describes it. It is older and newer than this page: what is not
// known by name is shown as it stands.

import { list, object, str, type Data } from "../fold/data"

export interface Control {
  name: string
  /** null: not known */
  asked: string | boolean | null
  installed: boolean | null
  observed: string | boolean | null
  reason: string
  missing: boolean
}

export interface Report {
  grade: string | null
  controls: Control[]
  missing: number
  phases: { name: string; ms: number }[]
  /** single values of the report */
  facts: [name: string, value: string | number | boolean][]
  refusals: string[]
}

const known = new Set(["grade", "controls", "missing", "phases", "refusals"])

export function readReport(raw: unknown): Report | null {
  if (typeof raw !== "object" || raw === null) return null
  const report = raw as Data
  const missing = new Set(list(report.missing).map(str))
  const controls = list(report.controls).map((c) => controlOf(str(object(c).name), object(c), missing))
  const facts: Report["facts"] = []
  for (const [name, value] of Object.entries(report)) {
    if (known.has(name)) continue
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") facts.push([name, value])
    else if ("requested" in object(value) && "observed" in object(value)) controls.push(controlOf(name, object(value), missing))
  }
  return {
    grade: str(report.grade) || null,
    controls: controls.toSorted((a, b) => Number(b.missing) - Number(a.missing)),
    missing: controls.filter((c) => c.missing).length,
    phases: list(report.phases).map((p) => ({ name: str(object(p).name), ms: Number(object(p).microseconds ?? 0) / 1000 })),
    facts,
    refusals: list(report.refusals).map((r) => (typeof r === "string" ? r : JSON.stringify(r))),
  }
}

function controlOf(name: string, c: Data, missing: ReadonlySet<string>): Control {
  const installed = typeof c.installed === "boolean" ? c.installed : null
  const observed = said(c.observed)
  const asked = said(c.requested)
  return { name, asked, installed, observed, reason: str(c.reason), missing: missing.has(name) || (asked !== false && (installed === false || observed === false)) }
}

const said = (value: unknown): string | boolean | null => (typeof value === "boolean" || typeof value === "string" ? value : null)
