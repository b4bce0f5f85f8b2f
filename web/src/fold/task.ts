// The fold of a task: the rules of domain/task/evolve.go, and of db/projection/task.go for the list.

import type { LogEvent } from "../live/frame"
import { num, str, text, type Text } from "./data"
import { ended, streamId, type RunStatus } from "./run"

export interface Attempt {
  run: string
  number: number
  /** the run that it repeats; empty when it repeats none */
  retryOf: string
  /** the run whose files and transcript it goes on from; empty when it begins at the source */
  continues: string
  /** null while it goes on */
  outcome: RunStatus | null
  startedAt: string
  positions: number[]
}

export interface Task {
  id: string
  opened: boolean
  agent: string
  title: Text
  prompt: Text
  model: string
  /** in their order */
  attempts: Attempt[]
  version: number
  positions: number[]
}

export function newTask(id: string): Task {
  return { id, opened: false, agent: "", title: null, prompt: null, model: "", attempts: [], version: 0, positions: [] }
}

/** The attempt that goes on, of which there is one at most. */
export const activeAttempt = (task: Task): Attempt | undefined => task.attempts.findLast((attempt) => attempt.outcome === null)

/** Folds one event of the task's stream. Repeats change nothing, kinds that are not known only count. */
export function foldTask(task: Task, e: LogEvent): Task {
  if (e.version <= task.version || streamId(e.stream, "task") !== task.id) return task
  const next = { ...task, version: e.version, positions: [...task.positions, e.position] }
  const d = e.data
  switch (e.kind) {
    case "task.opened":
      return { ...next, opened: true, agent: str(d.agent), title: text(d.title), prompt: text(d.prompt), model: str(d.model) }
    case "task.attempt_started":
      return { ...next, attempts: [...task.attempts, started(e)] }
    case "task.attempt_ended":
      return { ...next, attempts: task.attempts.map((a) => (a.run === str(d.run) ? endedBy(a, e) : a)) }
    default:
      return next
  }
}

function started(e: LogEvent): Attempt {
  const d = e.data
  return {
    run: str(d.run),
    number: num(d.attempt),
    retryOf: str(d.retry_of),
    continues: str(d.continues),
    outcome: null,
    startedAt: e.at,
    positions: [e.position],
  }
}

const endedBy = (attempt: Attempt, e: LogEvent): Attempt => ({
  ...attempt,
  outcome: str(e.data.outcome) as RunStatus,
  positions: [...attempt.positions, e.position],
})

/** A task in a list, in the shape in which REST answers it. */
export interface TaskRow {
  task_id: string
  agent_id: string
  title: string | null
  model: string
  state: RunStatus
  runs: number
  active_run_id: string | null
  last_run_id: string | null
  opened_by: string
  opened_at: string
  changed_at: string
  version: number
}

const byRun: Record<string, RunStatus> = {
  "run.queued": "queued",
  "run.started": "starting",
  "run.sandbox_prepared": "running",
  "run.model_answered": "running",
  "run.worker_lost": "queued",
  "run.released": "queued",
  "run.succeeded": "succeeded",
  "run.failed": "failed",
  "run.cancelled": "cancelled",
}

/**
 * The row with one event in it: of the task's own stream, or of its newest run, whose state it shows. Only the
 * task's stream has a version in the row; a run's event that the row has in it already may show an earlier state
 * until those after it are folded too, which are there at once.
 */
export function foldTaskRow<R extends TaskRow>(row: R, e: LogEvent): R {
  const state = byRun[e.kind]
  if (state && streamId(e.stream, "run") === row.last_run_id) return state === row.state ? row : { ...row, state }
  if (streamId(e.stream, "task") !== row.task_id || e.version <= row.version) return row
  const next = { ...row, version: e.version, changed_at: e.at }
  const run = str(e.data.run)
  if (e.kind === "task.attempt_started")
    return { ...next, runs: num(e.data.attempt), active_run_id: run, last_run_id: run, state: "queued" }
  if (e.kind === "task.attempt_ended") {
    const outcome = str(e.data.outcome)
    return { ...next, active_run_id: null, state: ended(outcome) ? (outcome as RunStatus) : row.state }
  }
  return { ...row, version: e.version }
}
