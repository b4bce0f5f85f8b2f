import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type FormEvent, useState } from "react"
import { useTranslation } from "react-i18next"
import type { Problem } from "../api/problem"
import { queryClient, useSend } from "../api/query"
import { mayWork, type Space } from "../space/space"
import { startAttempt, taskQuery } from "../task/query"
import { Button } from "../ui/button"
import { Dialog } from "../ui/dialog"
import { TextArea } from "../ui/field"
import { Icon } from "../ui/icon"
import { ProblemNote } from "../ui/problem"
import { isActive } from "../ui/state"
import { cancelRun, retryRun, type Run } from "./query"

/** What the interface allows now: stop what is active; repeat what has ended; go on from the task's newest attempt. */
export function Actions({ run, space }: { run: Run; space: Space | undefined }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const [continuing, setContinuing] = useState(false)
  const active = isActive(run.state)
  const task = useQuery({ ...taskQuery(run.task_id), enabled: run.task_id !== null && !active }).data
  const changed = () => Promise.all([queryClient.invalidateQueries({ queryKey: ["run", run.run_id] }), queryClient.invalidateQueries({ queryKey: ["task", run.task_id] })])
  const goTo = async ({ run_id }: { run_id: string }) => {
    void changed()
    await navigate({ to: "/runs/$run", params: { run: run_id } })
  }
  const cancel = useSend((_: null, key) => cancelRun(run.run_id, key), changed)
  const retry = useSend((_: null, key) => retryRun(run.run_id, key), goTo)
  const goOn = useSend((prompt: string, key) => startAttempt(run.task_id, { mode: "continue", prompt }, key), goTo)
  if (!mayWork(space)) return null
  const problem = cancel.problem ?? retry.problem
  return (
    <>
      {active && !run.cancel_asked && (
        <Button kind="danger" busy={cancel.sending} onClick={() => cancel.send(null)}>
          <Icon name="stop" />
          {t("run.stop")}
        </Button>
      )}
      {!active && (
        <Button busy={retry.sending} onClick={() => retry.send(null)}>
          <Icon name="again" />
          {t("run.retry")}
        </Button>
      )}
      {!active && task?.last_run_id === run.run_id && (
        <Button kind="primary" onClick={() => setContinuing(true)}>
          {t("run.continue")}
        </Button>
      )}
      {problem && (
        <div className="w-full">
          <ProblemNote problem={problem} />
        </div>
      )}
      <Dialog open={continuing} onClose={() => setContinuing(false)} title={t("run.continue")}>
        <Continue busy={goOn.sending} problem={goOn.problem} onSend={goOn.send} />
      </Dialog>
    </>
  )
}

function Continue({ busy, problem, onSend }: { busy: boolean; problem: Problem | null; onSend: (prompt: string) => void }) {
  const { t } = useTranslation()
  const [prompt, setPrompt] = useState("")
  const submit = (e?: FormEvent) => {
    e?.preventDefault()
    if (prompt.trim() && !busy) onSend(prompt)
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <TextArea label={t("task.next_prompt")} hint={t("task.continue_about")} required rows={6} value={prompt} onChange={(e) => setPrompt(e.target.value)} onKeyDown={(e) => (e.ctrlKey || e.metaKey) && e.key === "Enter" && submit()} data-first />
      {problem && <ProblemNote problem={problem} />}
      <Button type="submit" kind="primary" busy={busy} className="self-end">
        {t("task.start")}
      </Button>
    </form>
  )
}
