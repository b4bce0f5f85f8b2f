// A thread as the rows of one list, in the order in which they are read. A row's key stays the same as long as
// it is the same thing to a reader: words that become an answer keep their place and their element.

import { ended, type Call, type Run, type Step } from "../fold/run"
import type { Turn } from "../fold/conversation"
import type { Text } from "../fold/data"
import type { Words } from "../fold/words"
import type { Pending } from "./outbox"
import type { Outline, ThreadState } from "./thread"

export type Row = { key: string; positions: readonly number[] } & (
  | { type: "message"; turn: Turn }
  | { type: "pending"; pending: Pending }
  | { type: "run"; turn: Turn; run: Run | null; outline: Outline | null; reading: boolean; failed: unknown }
  /** what the model said or is saying; `still` while it speaks */
  | { type: "answer"; text: Text; still: boolean; broken: boolean }
  | { type: "call"; run: Run; step: Step; call: Call }
  | { type: "end"; status: "failed"; code: string; message: Text }
)

/** Rows of the turns, then what was sent and has no event yet. */
export function rowsOf(state: ThreadState, pending: readonly Pending[]): Row[] {
  const rows: Row[] = []
  for (const turn of state.conversation.turns) {
    rows.push({ key: `message ${turn.turn}`, type: "message", positions: turn.positions, turn })
    const run = state.runs.get(turn.run) ?? null
    const outline = state.outlines.get(turn.run) ?? null
    const reading = state.reading.has(turn.run)
    const failed = state.reading.get(turn.run)
    rows.push({
      key: `run ${turn.run}`,
      type: "run",
      positions: run ? ofRun(run) : [],
      turn,
      run,
      outline,
      reading: reading && failed === undefined,
      failed,
    })
    if (run) rows.push(...rowsOfRun(run, state.words.get(run.id) ?? null))
    else if (outline) rows.push(...rowsOfOutline(turn.run, outline))
  }
  for (const one of pending) rows.push({ key: `pending ${one.key}`, type: "pending", positions: [], pending: one })
  return rows
}

const made = new WeakMap<Run, { words: Words | null; rows: Row[] }>()

export function rowsOfRun(run: Run, words: Words | null): Row[] {
  const known = made.get(run)
  if (known && known.words === words) return known.rows
  const rows: Row[] = []
  for (const step of run.steps) rows.push(...rowsOfStep(run, step))
  if (words)
    rows.push({ key: `answer ${run.id} ${words.step}`, type: "answer", positions: [], text: words.text, still: true, broken: words.broken })
  if (run.status === "failed")
    rows.push({ key: `end ${run.id}`, type: "end", positions: [], status: "failed", code: run.failureCode, message: run.failureMessage })
  made.set(run, { words, rows })
  return rows
}

function rowsOfStep(run: Run, step: Step): Row[] {
  const said: Row = {
    key: `answer ${run.id} ${step.number}`,
    type: "answer",
    positions: [step.position],
    text: step.text,
    still: false,
    broken: false,
  }
  const calls = step.calls.map((call): Row => ({
    key: `call ${run.id} ${call.id}`,
    type: "call",
    positions: call.positions,
    run,
    step,
    call,
  }))
  return [said, ...calls]
}

function rowsOfOutline(run: string, outline: Outline): Row[] {
  if (!ended(outline.status)) return []
  if (outline.status === "failed")
    return [{ key: `end ${run}`, type: "end", positions: [], status: "failed", code: outline.failureCode, message: null }]
  if (outline.status === "cancelled") return []
  return [{ key: `answer ${run} last`, type: "answer", positions: [], text: outline.answer, still: false, broken: false }]
}

/** The positions of a run that none of its other rows has. */
function ofRun(run: Run): number[] {
  const elsewhere = new Set(run.steps.flatMap((step) => [step.position, ...step.calls.flatMap((call) => call.positions)]))
  return run.positions.filter((position) => !elsewhere.has(position))
}
