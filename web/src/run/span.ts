// What of a run took how long, from the times of its events. Times are milliseconds since 1970.

import { list, num, numOrNull, object, str } from "../fold/data"
import type { LogEvent } from "../live/frame"

export type SpanKind = "queued" | "starting" | "sandbox" | "model" | "tool" | "changes"

export interface Span {
  key: string
  kind: SpanKind
  /** of a tool, its name */
  name: string
  /** of the model and its tools: 1, 2, ... */
  step: number | null
  from: number
  /** null: not over */
  to: number | null
  /** as the worker measured it; null: what lies between two events */
  tookMs: number | null
  /** when the model's first words came */
  firstToken: number | null
  input: number | null
  output: number | null
  /** of a tool that returned */
  outcome: string | null
  /** nobody will say how it ended: its worker was lost, or its run ended first */
  open: boolean
  position: number
}

export interface Timeline {
  spans: Span[]
  from: number
  /** of what is over; a span that is not grows beyond it */
  to: number
  running: boolean
}

const ends = new Set(["run.succeeded", "run.failed", "run.cancelled"])

/** `waiting` goes on until something is done, `model` is an answer that nobody has yet, `left` are calls of the last answer that did not return. */
type Reading = { spans: Span[]; pending: Map<string, Span>; waiting: Span | null; model: Span | null; step: number; left: number }

/** Null while there are no events. */
export function timeline(events: readonly LogEvent[]): Timeline | null {
  const first = events[0]
  if (!first) return null
  const now: Reading = { spans: [], pending: new Map(), waiting: null, model: null, step: 0, left: 0 }
  let over = false
  for (const e of events) {
    const at = Date.parse(e.at)
    if (over) break
    over = ends.has(e.kind)
    take(now, e, at)
  }
  const from = now.spans.reduce((least, s) => Math.min(least, s.from), Date.parse(first.at))
  const to = now.spans.reduce((most, s) => Math.max(most, s.to ?? s.from), Date.parse(events.at(-1)!.at))
  return { spans: now.spans, from, to: Math.max(to, from + 1), running: !over }
}

function take(now: Reading, e: LogEvent, at: number): void {
  const us = numOrNull(e.data.duration_us)
  const measured = us === null ? at : at - us / 1000
  switch (e.kind) {
    case "run.queued":
      now.waiting = add(now, e, "queued", at)
      return
    case "run.started":
      settle(now, at)
      now.waiting = add(now, e, "starting", at)
      return
    case "run.sandbox_prepared":
      settle(now, measured)
      done(add(now, e, "sandbox", measured), at, us)
      return think(now, e, at)
    case "run.model_answered":
      return answered(now, e, at, measured)
    case "run.tool_called":
      return called(now, e, at)
    case "run.tool_returned":
      return returned(now, e, at, measured)
    case "run.changes_recorded":
      settle(now, measured)
      done(add(now, e, "changes", measured), at, us)
      return
    case "run.worker_lost":
    case "run.released":
      leave(now, at)
      now.waiting = add(now, e, "queued", at)
      return
    default:
      if (ends.has(e.kind)) leave(now, at)
  }
}

function answered(now: Reading, e: LogEvent, at: number, measured: number): void {
  settle(now, measured)
  const usage = object(e.data.usage)
  const first = numOrNull(e.data.first_token_us)
  now.step = num(e.data.step) || now.step + 1
  now.left = list(e.data.calls).length
  const span = done(add(now, e, "model", measured), at, numOrNull(e.data.duration_us))
  span.step = now.step
  span.name = str(e.data.model)
  span.firstToken = first === null ? null : measured + first / 1000
  span.input = numOrNull(usage.input_tokens)
  span.output = numOrNull(usage.output_tokens)
}

function called(now: Reading, e: LogEvent, at: number): void {
  settle(now, at)
  now.pending.set(str(e.data.call), tool(now, e, at))
}

function returned(now: Reading, e: LogEvent, at: number, measured: number): void {
  const span = now.pending.get(str(e.data.call)) ?? tool(now, e, measured)
  done(span, at, numOrNull(e.data.duration_us)).outcome = str(e.data.outcome)
  now.pending.delete(str(e.data.call))
  now.left--
  think(now, e, at)
}

function tool(now: Reading, e: LogEvent, from: number): Span {
  return Object.assign(add(now, e, "tool", from), { name: str(e.data.tool), step: num(e.data.step) || now.step })
}

/** Once every call has returned the model is asked again; its answer will say what it took. */
function think(now: Reading, e: LogEvent, at: number): void {
  if (now.pending.size > 0 || now.left > 0) return
  now.model = Object.assign(add(now, e, "model", at), { step: now.step + 1 })
}

/** What was waited for is there. */
function settle(now: Reading, at: number): void {
  if (now.waiting) now.waiting.to = Math.max(now.waiting.from, at)
  now.waiting = null
  if (now.model) now.spans.splice(now.spans.lastIndexOf(now.model), 1)
  now.model = null
}

/** The run ends, or its worker is gone: what was under way ends with it, and nobody says how. */
function leave(now: Reading, at: number): void {
  settle(now, at)
  for (const span of now.pending.values()) Object.assign(span, { to: at, open: true })
  now.pending.clear()
  now.left = 0
}

function done(span: Span, at: number, us: number | null): Span {
  return Object.assign(span, { to: at, tookMs: us === null ? null : us / 1000 })
}

function add(now: Reading, e: LogEvent, kind: SpanKind, from: number): Span {
  const span: Span = { key: `${kind} ${e.position}`, kind, name: "", step: null, from, to: null, tookMs: null, firstToken: null, input: null, output: null, outcome: null, open: false, position: e.position }
  now.spans.push(span)
  return span
}
