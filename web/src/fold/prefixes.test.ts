// The browser folds the same state as the server, for 1,000 prefixes of random histories that the server's
// own decisions made (domain/catalog/browser_test.go writes them).

import { readFileSync } from "node:fs"
import { describe, expect, test } from "vitest"
import type { LogEvent } from "../live/frame"
import { activeTurn, foldConversation, newConversation, waitingTurns, type Conversation } from "./conversation"
import { foldConversationRow, type ConversationRow } from "./list"
import { foldRun, streamId, type Run } from "./run"
import { activeAttempt, foldTask, newTask, type Task } from "./task"

interface Line {
  history: number
  topic: string
  event: LogEvent
  conversation?: { active: string | null; waiting: string[]; started: number; turns: object[] }
  run?: object
  task?: object
}

const lines = readFileSync(new URL("testdata/prefixes.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((l) => JSON.parse(l) as Line)

class Folded {
  conversations = new Map<string, Conversation>()
  rows = new Map<string, ConversationRow>()
  runs = new Map<string, Run>()
  tasks = new Map<string, Task>()

  take(e: LogEvent): void {
    const id = streamId(e.stream, "conversation")
    if (id) {
      this.conversations.set(id, foldConversation(this.conversations.get(id) ?? newConversation(id), e))
      const row = foldConversationRow(this.rows.get(id) ?? null, e)
      if (row) this.rows.set(id, row)
    }
    const task = streamId(e.stream, "task")
    if (task) this.tasks.set(task, foldTask(this.tasks.get(task) ?? newTask(task), e))
    const run = streamId(e.stream, "run")
    const folded = run && foldRun(this.runs.get(run) ?? null, e)
    if (run && folded) this.runs.set(run, folded)
  }
}

/** The browser's state of one stream, in the words of the server's. */
function shown(folded: Folded, stream: string): object | undefined {
  const conversation = folded.conversations.get(streamId(stream, "conversation") ?? "")
  if (conversation) return showConversation(conversation)
  const task = folded.tasks.get(streamId(stream, "task") ?? "")
  if (task) return showTask(task)
  const run = folded.runs.get(streamId(stream, "run") ?? "")
  return run && showRun(run)
}

function showConversation(c: Conversation): object {
  return {
    active: activeTurn(c)?.turn ?? null,
    waiting: waitingTurns(c).map((t) => t.turn),
    started: Math.max(0, ...c.turns.map((t) => t.number ?? 0)),
    turns: c.turns.map(({ turn, state, number }) => ({ turn, state, number })),
  }
}

function showTask(t: Task): object {
  return {
    active: activeAttempt(t)?.run ?? null,
    last: t.attempts.at(-1)?.run ?? null,
    attempts: t.attempts.at(-1)?.number ?? 0,
    title: t.title,
    prompt: t.prompt,
  }
}

function showRun(r: Run): object {
  return {
    task: r.task || null,
    attempt: r.attempt,
    status: r.status,
    epoch: r.epoch,
    worker: r.worker,
    host: r.host,
    deadline: r.deadline,
    sandbox_epoch: r.sandboxEpoch,
    cancel_requested: r.cancelRequested,
    prompt: r.prompt,
    answer: r.answer,
    code: r.failureCode,
    message: r.failureMessage,
    input_tokens: r.inputTokens,
    output_tokens: r.outputTokens,
    steps: r.steps.map((step) => ({
      text: step.text,
      finish: step.finish,
      calls: step.calls.map((c) => ({
        id: c.id,
        tool: c.tool,
        arguments: c.arguments,
        state: c.state,
        called_epoch: c.calledEpoch,
        outcome: c.outcome,
        exit_code: c.exitCode,
        output: c.output,
        output_bytes: c.outputBytes,
        truncated: c.truncated,
      })),
    })),
  }
}

/** The histories, each with the server's state after each of its events. */
const histories = grouped()

function grouped(): Line[][] {
  const groups = new Map<number, Line[]>()
  for (const line of lines) groups.set(line.history, [...(groups.get(line.history) ?? []), line])
  return [...groups.values()]
}

function seeded(seed: number): () => number {
  return () => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed / 2147483648
  }
}

describe("folding in the browser", () => {
  test("there are 1,000 prefixes, with every kind of the three streams", () => {
    expect(lines).toHaveLength(1000)
    expect(new Set(lines.map((l) => l.event.kind)).size).toBeGreaterThanOrEqual(19)
  })

  test("gives the state of the server after every prefix", () => {
    for (const history of histories) {
      const folded = new Folded()
      const expected = new Map<string, unknown>()
      for (const line of history) {
        folded.take(line.event)
        expected.set(line.event.stream, line.conversation ?? line.run ?? line.task)
        for (const [stream, state] of expected) {
          expect(shown(folded, stream), `history ${line.history}, position ${line.event.position}, ${stream}`).toEqual(state)
        }
      }
    }
  })

  test("does not mind events that come again", () => {
    const random = seeded(1)
    for (const history of histories) {
      const folded = new Folded()
      for (let i = 0; i < history.length; i++) {
        const from = Math.max(0, i - Math.floor(random() * 40))
        for (const line of history.slice(from, i + 1)) folded.take(line.event)
        const line = history[i]!
        expect(shown(folded, line.event.stream), `position ${line.event.position}`).toEqual(line.conversation ?? line.run ?? line.task)
      }
      const positions = [...folded.runs.values()].flatMap((r) => r.positions)
      expect(new Set(positions).size).toBe(positions.length)
    }
  })

  test("does not alter what was folded before", () => {
    for (const history of histories) {
      const folded = new Folded()
      for (const { event } of history) {
        const run = folded.runs.get(streamId(event.stream, "run") ?? "")
        const before = JSON.stringify(run)
        folded.take(event)
        expect(JSON.stringify(run)).toBe(before)
      }
    }
  })

  test("keeps the row of a list as the read table has it", () => {
    for (const history of histories) {
      const folded = new Folded()
      for (const { event, conversation } of history) {
        folded.take(event)
        const id = streamId(event.stream, "conversation")
        if (!id || !conversation) continue
        const row = folded.rows.get(id)!
        const active = folded.conversations.get(id)!.turns.find((t) => t.turn === conversation.active)
        expect(row).toMatchObject({
          turns: conversation.started,
          waiting: conversation.waiting.length,
          active_run_id: active?.run ?? null,
          version: event.version,
        })
      }
    }
  })
})
