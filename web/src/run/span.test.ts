import { expect, it } from "vitest"
import type { LogEvent } from "../live/frame"
import { timeline } from "./span"

const second = (s: number) => new Date(Date.UTC(2026, 0, 1) + s * 1000).toISOString()
const log = (...events: [kind: string, at: number, data?: Record<string, unknown>][]): LogEvent[] =>
  events.map(([kind, at, data = {}], i) => ({ kind: `run.${kind}`, at: second(at), data, position: i + 1, version: i + 1, stream: "run/1", schema: 1, actor: "worker/w" }))
const told = (events: LogEvent[]) => timeline(events)!.spans.map((s) => [s.kind, (s.from - Date.UTC(2026, 0, 1)) / 1000, s.to === null ? null : (s.to - Date.UTC(2026, 0, 1)) / 1000])

const answered = (step: number, calls: string[]) => ({ step, calls: calls.map((id) => ({ id })), duration_us: 1_000_000, first_token_us: 250_000, usage: { input_tokens: 3, output_tokens: null } })

const whole = log(
  ["queued", 0],
  ["started", 2],
  ["model_answered", 4, answered(1, ["a"])],
  ["sandbox_prepared", 5, { duration_us: 500_000 }],
  ["tool_called", 5, { call: "a", tool: "shell" }],
  ["tool_returned", 7, { call: "a", tool: "shell", outcome: "error", duration_us: 1_900_000 }],
  ["model_answered", 9, answered(2, [])],
  ["changes_recorded", 9, { duration_us: 0 }],
  ["succeeded", 9],
)

it("tells what took how long", () => {
  expect(told(whole)).toEqual([
    ["queued", 0, 2],
    ["starting", 2, 3],
    ["model", 3, 4],
    ["sandbox", 4.5, 5],
    ["tool", 5, 7],
    ["model", 8, 9],
    ["changes", 9, 9],
  ])
  const line = timeline(whole)!
  expect(line.running).toBe(false)
  expect(line.spans[4]).toMatchObject({ outcome: "error", tookMs: 1900, step: 1 })
  expect(line.spans[2]).toMatchObject({ input: 3, output: null, firstToken: Date.parse(second(3.25)) })
})

it("leaves open what goes on, and says when nobody knows the end", () => {
  expect(told(whole.slice(0, 5)).at(-1)).toEqual(["tool", 5, null])
  expect(told(whole.slice(0, 6)).at(-1)).toEqual(["model", 7, null])
  const lost = timeline([...whole.slice(0, 5), ...log(["worker_lost", 8]).map((e) => ({ ...e, position: 6 }))])!
  expect(lost.spans.at(-2)).toMatchObject({ kind: "tool", open: true, to: Date.parse(second(8)) })
  expect(lost.spans.at(-1)).toMatchObject({ kind: "queued", to: null })
  expect(lost.running).toBe(true)
})
