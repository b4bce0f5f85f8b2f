// The fold of one run: the same rules as domain/run/evolve.go, and the sums of db/projection/run.go.

import type { LogEvent } from "../live/frame"
import { bool, list, num, numOrNull, object, str, text, type Data, type Text } from "./data"

export type RunStatus = "queued" | "starting" | "running" | "succeeded" | "failed" | "cancelled"
export type Outcome = "ok" | "error" | "timeout" | "cancelled" | "in_doubt"

export interface Call {
  id: string
  tool: string
  arguments: Text
  state: "asked" | "called" | "returned"
  /** 0: never called */
  calledEpoch: number
  /** empty until it has returned */
  outcome: string
  exitCode: number | null
  output: Text
  /** before truncation */
  outputBytes: number
  truncated: boolean
  durationUs: number | null
  calledAt: string | null
  /** of the events that made it what it is, after the answer that asked for it */
  positions: number[]
}

export interface Step {
  number: number
  epoch: number
  model: string
  text: Text
  finish: string
  calls: Call[]
  inputTokens: number | null
  outputTokens: number | null
  firstTokenUs: number | null
  durationUs: number
  at: string
  position: number
}

export interface Run {
  id: string
  status: RunStatus
  /** empty for a run of a task */
  conversation: string
  task: string
  turn: string
  /** 1, 2, ... */
  attempt: number
  /** the run that this one repeats; empty when it repeats none */
  retryOf: string
  /** the run whose files and transcript this one goes on from; empty when it begins at the source */
  continues: string
  agent: string
  revision: number
  model: string
  prompt: Text
  epoch: number
  /** who holds it; empty while nobody does */
  worker: string
  host: string
  deadline: string | null
  grade: string | null
  sandboxEpoch: number
  steps: Step[]
  cancelRequested: boolean
  answer: Text
  failureCode: string
  failureMessage: Text
  /** null while nothing is known */
  inputTokens: number | null
  outputTokens: number | null
  queuedAt: string
  startedAt: string | null
  endedAt: string | null
  version: number
  /** of all its events, in order */
  positions: number[]
}

export const ended = (status: string): boolean => status === "succeeded" || status === "failed" || status === "cancelled"
export const held = (status: string): boolean => status === "starting" || status === "running"

/** The id of a stream like "run/ID", of that kind; null for another kind. */
export function streamId(stream: string, kind: string): string | null {
  return stream.startsWith(`${kind}/`) ? stream.slice(kind.length + 1) : null
}

/**
 * Folds one event of the run's stream. An event that was folded before changes nothing; a kind that is not
 * known counts and changes nothing else. Null as long as the run was not queued.
 */
export function foldRun(run: Run | null, e: LogEvent): Run | null {
  if (!run) return e.kind === "run.queued" ? queued(e) : null
  if (e.version <= run.version) return run
  const next = { ...run, version: e.version, positions: [...run.positions, e.position] }
  return ended(run.status) ? next : { ...next, ...change(next, e, e.data) }
}

function queued(e: LogEvent): Run {
  const d = e.data
  return {
    id: streamId(e.stream, "run") ?? "",
    status: "queued",
    conversation: str(d.conversation),
    task: str(d.task),
    turn: str(d.turn),
    attempt: Math.max(1, num(d.attempt)),
    retryOf: str(d.retry_of),
    continues: str(d.continues),
    agent: str(d.agent),
    revision: num(d.revision),
    model: str(d.model),
    prompt: text(d.prompt),
    epoch: 0,
    worker: "",
    host: "",
    deadline: null,
    grade: null,
    sandboxEpoch: 0,
    steps: [],
    cancelRequested: false,
    answer: null,
    failureCode: "",
    failureMessage: null,
    inputTokens: null,
    outputTokens: null,
    queuedAt: e.at,
    startedAt: null,
    endedAt: null,
    version: e.version,
    positions: [e.position],
  }
}

function change(run: Run, e: LogEvent, d: Data): Partial<Run> {
  switch (e.kind) {
    case "run.started":
      return {
        status: "starting",
        epoch: num(d.epoch),
        worker: str(d.worker),
        host: str(d.host),
        deadline: str(d.deadline) || null,
        startedAt: run.startedAt ?? e.at,
      }
    case "run.sandbox_prepared":
      return { status: "running", sandboxEpoch: num(d.epoch), grade: text(d.grade) as string | null }
    case "run.model_answered":
      return answered(run, e, d)
    case "run.tool_called":
      return withCall(run, str(d.call), e, { state: "called", calledEpoch: num(d.epoch), calledAt: e.at })
    case "run.tool_returned":
      return withCall(run, str(d.call), e, returned(d))
    case "run.cancel_requested":
      return { cancelRequested: true }
    case "run.worker_lost":
    case "run.released":
      return { status: "queued", worker: "", host: "" }
    case "run.succeeded":
      return { status: "succeeded", answer: text(d.answer), endedAt: e.at }
    case "run.failed":
      return { status: "failed", failureCode: str(d.code), failureMessage: text(d.message), endedAt: e.at }
    case "run.cancelled":
      return { status: "cancelled", endedAt: e.at }
    default:
      return {}
  }
}

function answered(run: Run, e: LogEvent, d: Data): Partial<Run> {
  const usage = object(d.usage)
  const step: Step = {
    number: run.steps.length + 1,
    epoch: num(d.epoch),
    model: str(d.model),
    text: text(d.text),
    finish: str(d.finish),
    calls: list(d.calls).map((call) => asked(object(call))),
    inputTokens: numOrNull(usage.input_tokens),
    outputTokens: numOrNull(usage.output_tokens),
    firstTokenUs: numOrNull(d.first_token_us),
    durationUs: num(d.duration_us),
    at: e.at,
    position: e.position,
  }
  return {
    status: "running",
    steps: [...run.steps, step],
    inputTokens: plus(run.inputTokens, step.inputTokens),
    outputTokens: plus(run.outputTokens, step.outputTokens),
  }
}

/** Unknown plus anything is unknown only while nothing is known. */
function plus(sum: number | null, more: number | null): number | null {
  return more === null ? sum : (sum ?? 0) + more
}

function asked(call: Data): Call {
  return {
    id: str(call.id),
    tool: str(call.tool),
    arguments: text(call.arguments),
    state: "asked",
    calledEpoch: 0,
    outcome: "",
    exitCode: null,
    output: null,
    outputBytes: 0,
    truncated: false,
    durationUs: null,
    calledAt: null,
    positions: [],
  }
}

function returned(d: Data): Partial<Call> {
  return {
    state: "returned",
    outcome: str(d.outcome),
    exitCode: numOrNull(d.exit_code),
    output: text(d.output),
    outputBytes: num(d.output_bytes),
    truncated: bool(d.truncated),
    durationUs: numOrNull(d.duration_us),
  }
}

/** Changes one call; the newest step comes first, since that is where work goes on. */
function withCall(run: Run, id: string, e: LogEvent, changed: Partial<Call>): Partial<Run> {
  for (let i = run.steps.length - 1; i >= 0; i--) {
    const step = run.steps[i]!
    const at = step.calls.findIndex((call) => call.id === id)
    if (at < 0) continue
    const old = step.calls[at]!
    const calls = step.calls.with(at, { ...old, ...changed, positions: [...old.positions, e.position] })
    return { steps: run.steps.with(i, { ...step, calls }) }
  }
  return {}
}
