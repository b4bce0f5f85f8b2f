// A thread may be opened at any moment, and read slowly while the log goes on: in the end it shows what the whole
// log says. The histories are those of fold/prefixes.test.ts.

import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { foldConversation, newConversation, type Conversation } from "../fold/conversation"
import { ended, foldRun, streamId, type Run } from "../fold/run"
import type { LiveClient } from "../live/client"
import type { LogEvent } from "../live/frame"
import type { Watcher } from "../live/topic"
import { rowsOf } from "./row"
import { Thread, type Outline, type Source } from "./thread"

const file = new URL("../fold/testdata/prefixes.jsonl", import.meta.url)
const topics = new Map<string, LogEvent[]>()
for (const line of readFileSync(file, "utf8").trimEnd().split("\n")) {
  const { history, topic, event } = JSON.parse(line) as { history: number; topic: string; event: LogEvent }
  topics.set(`${history} ${topic}`, [...(topics.get(`${history} ${topic}`) ?? []), event])
}

for (const [name, events] of topics) if (events[0]!.kind !== "conversation.opened") topics.delete(name) // that of a task

function whole(id: string, events: LogEvent[]): { conversation: Conversation; runs: Map<string, Run> } {
  const runs = new Map<string, Run>()
  let conversation = newConversation(id)
  for (const e of events) {
    conversation = foldConversation(conversation, e)
    const run = streamId(e.stream, "run")
    const next = run && foldRun(runs.get(run) ?? null, e)
    if (run && next) runs.set(run, next)
  }
  return { conversation, runs }
}

/** A log that goes on, and what can be asked of it. Answers are of the moment of the asking, and come later. */
class World implements Source {
  now: number
  readonly id: string
  readonly events: LogEvent[]
  readonly random: () => number
  readonly open: (() => void)[] = []
  pageSize = 3
  watcher: Watcher | null = null

  constructor(id: string, events: LogEvent[], random: () => number) {
    this.id = id
    this.events = events
    this.random = random
    this.now = Math.floor(random() * events.length)
  }

  readonly client = {
    watch: (_id: string, _from: unknown, watcher: Watcher) => {
      this.watcher = watcher
      return () => {}
    },
  } as unknown as LiveClient

  begin(): void {
    this.watcher!.began?.({ logId: "", incarnation: 0, position: this.events[this.now - 1]?.position ?? 0 })
  }

  #later<T>(value: T): Promise<T> {
    return new Promise((done) => this.open.push(() => done(value)))
  }

  turns(cursor: string | null) {
    const { conversation, runs } = whole(this.id, this.events.slice(0, this.now))
    const end = cursor === null ? conversation.turns.length : Number(cursor)
    const start = Math.max(0, end - this.pageSize)
    const turns = conversation.turns.slice(start, end).map((turn) => ({ ...turn, positions: [] }))
    const outlines = new Map<string, Outline>()
    for (const turn of turns) {
      const run = runs.get(turn.run)
      outlines.set(turn.run, { status: run?.status ?? "queued", answer: run?.answer ?? null, failureCode: run?.failureCode ?? "" })
    }
    return this.#later({ turns, outlines, older: start > 0 ? String(start) : null })
  }

  runEvents(id: string, after: number) {
    const all = this.events.slice(0, this.now).filter((e) => e.stream === `run/${id}` && e.position > after)
    const events = all.slice(0, 2)
    return this.#later({ events, next: events.at(-1)?.position ?? after, more: all.length > 2 })
  }

  /** Something happens: events come in, or an answer does. */
  step(): boolean {
    const left = this.events.length - this.now
    if (this.open.length && (left === 0 || this.random() < 0.5)) this.open.splice(Math.floor(this.random() * this.open.length), 1)[0]!()
    else if (left) {
      const n = 1 + Math.floor(this.random() * Math.min(4, left))
      this.now += n // what is handed out is committed: an answer that is asked for then has it
      this.watcher!.events(this.events.slice(this.now - n, this.now))
    } else return false
    return true
  }
}

const settle = () => new Promise((done) => setImmediate(done))

test("opened at any moment, a thread comes to what the log says", { timeout: 60_000 }, async () => {
  let seed = 7
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648
  let reread = 0
  for (const [name, events] of topics) {
    for (let i = 0; i < 5; i++) {
      const id = name.split(" ")[1]!
      const world = new World(id, events, random)
      const thread = new Thread(id, world.client, world)
      const stop = thread.subscribe(() => {})
      world.begin()
      const toTheEnd = async () => {
        for (let quiet = 0; quiet < 3; quiet++) {
          await settle()
          if (world.step()) quiet = 0
          if (random() < 0.2) void thread.older()
        }
        await new Promise((done) => setTimeout(done, 20)) // the thread shows itself once a frame
      }
      await toTheEnd()
      while (thread.get().older !== "none") {
        void thread.older()
        await toTheEnd()
      }
      const want = whole(id, events)
      const got = thread.get()
      expect(got.conversation.turns.map(({ turn, state, number, text }) => ({ turn, state, number, text }))).toEqual(
        want.conversation.turns.map(({ turn, state, number, text }) => ({ turn, state, number, text })),
      )
      for (const [run, state] of got.runs) expect(state).toEqual(want.runs.get(run))
      for (const [run, state] of want.runs) {
        if (!ended(state.status)) expect(got.runs.get(run), "a run that goes on is known wholly").toEqual(state)
        if (!got.runs.has(run)) expect(ended(got.outlines.get(run)!.status), "what is known by its outline has ended").toBe(true)
      }
      const keys = rowsOf(got, []).map((row) => row.key)
      expect(new Set(keys).size).toBe(keys.length)
      reread += got.runs.size
      stop()
    }
  }
  expect(reread).toBeGreaterThan(100)
})
