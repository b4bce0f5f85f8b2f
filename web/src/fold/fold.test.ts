import { describe, expect, test } from "vitest"
import type { LogEvent } from "../live/frame"
import { foldConversation, newConversation, withPage, type Turn } from "./conversation"
import { foldRun } from "./run"
import { activeAttempt, foldTask, foldTaskRow, newTask, type TaskRow } from "./task"

let position = 0
const event = (stream: string, version: number, kind: string, data: Record<string, unknown>): LogEvent => ({
  position: ++position,
  stream,
  version,
  kind,
  schema: 1,
  at: "2026-01-02T03:04:05.000000Z",
  actor: "system",
  data,
})
const turn = (id: string, state: Turn["state"]): Turn => ({
  turn: id,
  message: id,
  run: id,
  author: "account/1",
  text: id,
  postedAt: "",
  state,
  number: null,
  positions: [],
})
const posted = (v: number, id: string) =>
  event("conversation/c", v, "conversation.message_posted", { turn: id, run: id, message: id, text: id })

describe("what the log may hold and this page does not know", () => {
  test("unknown kinds and odd data change nothing and fail nothing", () => {
    const run = foldRun(null, event("run/r", 1, "run.queued", { prompt: 7, tools: null }))
    const next = foldRun(run, event("run/r", 2, "run.sang", { song: 1 }))
    expect(next).toMatchObject({ status: "queued", version: 2, prompt: null })
    expect(foldRun(next, event("run/r", 3, "run.model_answered", { calls: "x" }))).toMatchObject({ status: "running" })
    const c = foldConversation(newConversation("c"), event("conversation/c", 1, "conversation.renamed", {}))
    expect(c).toMatchObject({ version: 1, turns: [] })
  })
  test("erased text stays told apart from none", () => {
    const run = foldRun(null, event("run/r", 1, "run.queued", { prompt: { erased: true } }))
    expect(run?.prompt).toEqual({ erased: true })
    expect(run?.answer).toBeNull()
  })
})

describe("pages that were read as a whole", () => {
  test("agree with events that they have in them already", () => {
    const page = [turn("a", "succeeded"), turn("b", "active")]
    const events = [posted(3, "b"), event("conversation/c", 4, "conversation.turn_started", { turn: "b", number: 2 }), posted(5, "d")]
    const first = withPage(events.reduce(foldConversation, newConversation("c")), page)
    const then = events.reduce(foldConversation, withPage(newConversation("c"), page))
    for (const c of [first, then])
      expect(c.turns.map((t) => [t.turn, t.state])).toEqual([
        ["a", "succeeded"],
        ["b", "active"],
        ["d", "waiting"],
      ])
  })
  test("never take a state back", () => {
    const c = withPage(newConversation("c"), [turn("a", "succeeded")])
    const again = foldConversation(c, event("conversation/c", 9, "conversation.turn_started", { turn: "a", number: 1 }))
    expect(again.turns[0]?.state).toBe("succeeded")
    expect(withPage(c, [turn("a", "waiting")]).turns[0]?.state).toBe("succeeded")
  })
  test("older ones stand before, newer events after", () => {
    let c = withPage(newConversation("c"), [turn("d", "succeeded"), turn("e", "waiting")])
    c = foldConversation(c, posted(20, "f"))
    c = withPage(c, [turn("a", "failed"), turn("b", "cancelled")])
    c = withPage(c, [turn("e", "active"), turn("f", "waiting")])
    expect(c.turns.map((t) => t.turn)).toEqual(["a", "b", "d", "e", "f"])
  })
})

describe("tasks", () => {
  const task = (v: number, kind: string, data: Record<string, unknown>) => event("task/t", v, `task.${kind}`, data)
  const events = [
    task(1, "opened", { agent: "a", title: "T", prompt: { erased: true }, model: "demo" }),
    task(2, "attempt_started", { run: "r1", attempt: 1 }),
    task(3, "attempt_ended", { run: "r1", outcome: "failed" }),
    task(4, "attempt_started", { run: "r2", attempt: 2, retry_of: "r1" }),
  ]

  test("have attempts in their order, one of which may go on", () => {
    const folded = [...events, ...events].reduce(foldTask, newTask("t"))
    expect(folded).toMatchObject({ title: "T", prompt: { erased: true }, version: 4 })
    expect(folded.attempts.map((a) => [a.run, a.number, a.retryOf, a.outcome])).toEqual([
      ["r1", 1, "", "failed"],
      ["r2", 2, "r1", null],
    ])
    expect(activeAttempt(folded)?.run).toBe("r2")
  })

  test("show in a list the state of their newest run", () => {
    const opened: TaskRow = {
      task_id: "t",
      agent_id: "a",
      title: "T",
      model: "demo",
      state: "queued",
      runs: 0,
      active_run_id: null,
      last_run_id: null,
      opened_by: "",
      opened_at: "",
      changed_at: "",
      version: 1,
    }
    const row = [...events, ...events].reduce(foldTaskRow, opened)
    expect(row).toMatchObject({ state: "queued", runs: 2, active_run_id: "r2", last_run_id: "r2", version: 4 })
    const later = [event("run/r1", 9, "run.succeeded", {}), event("run/r2", 2, "run.started", {})].reduce(foldTaskRow, row)
    expect(later.state).toBe("starting")
    expect(foldTaskRow(later, task(5, "attempt_ended", { run: "r2", outcome: "succeeded" }))).toMatchObject({
      state: "succeeded",
      active_run_id: null,
    })
  })
})
