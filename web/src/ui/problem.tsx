import { useTranslation } from "react-i18next"
import type { Problem } from "../api/problem"
import { Button } from "./button"
import { Copy } from "./copy"

/** Says what was refused, why, and what to do; with what an operator needs to find it in the log. */
export function ProblemNote({ problem, again }: { problem: Problem; again?: () => void }) {
  const { t } = useTranslation()
  const told = problem.status === 0 ? t("ui.unreachable") : problem.message
  return (
    <div role="alert" className="flex flex-col gap-2 rounded-md border border-bad bg-bad-soft p-3 text-sm">
      <p className="font-medium break-words">{told}</p>
      {problem.errors.length > 0 && (
        <ul className="list-disc pl-4">
          {problem.errors.map((e) => (
            <li key={e.location + e.message} className="break-words">
              <code className="font-mono">{e.location}</code> {e.message}
            </li>
          ))}
        </ul>
      )}
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        {again && <Button onClick={again}>{t("ui.again")}</Button>}
        <Reference problem={problem} />
      </div>
    </div>
  )
}

/** The code and the request's id, to copy. */
function Reference({ problem }: { problem: Problem }) {
  const text = problem.requestId ? `${problem.code} ${problem.requestId}` : problem.code
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-x-2 text-text">
      <code className="min-w-0 font-mono text-xs break-all">{text}</code>
      <Copy text={text} />
    </span>
  )
}
