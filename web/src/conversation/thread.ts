// What a conversation's page shows: its newest turns as REST has them, and after that every event as it comes.
//
//   loading --began, page read--> ready --older()--> ready with more
//      ^                            |
//      +---------- forget ----------+          gone: the topic ended      refused: the page could not be read
//
// A run is known in one of two ways: by its outline (the state and the answer, of the page that was read), or
// wholly, by all its events. Runs that have not ended are read wholly at once, others when somebody looks.
// It may use live and fold, and nothing of React.

import type { Store } from "../live/connection"
import type { LiveClient } from "../live/client"
import type { Delta, LogEvent } from "../live/frame"
import { foldConversation, newConversation, refold, withPage, type Conversation, type Turn } from "../fold/conversation"
import type { Text } from "../fold/data"
import { ended, foldRun, streamId, type Run } from "../fold/run"
import { hear, settle, type Words } from "../fold/words"

/** A run as far as the page of messages tells. */
export interface Outline {
  status: Run["status"]
  answer: Text
  failureCode: string
}

export interface TurnPage {
  /** oldest first */
  turns: Turn[]
  outlines: Map<string, Outline>
  older: string | null
}

export interface EventPage {
  events: LogEvent[]
  next: number
  more: boolean
}

/** Where a thread reads what was before it began to watch. */
export interface Source {
  turns(cursor: string | null): Promise<TurnPage>
  runEvents(run: string, after: number): Promise<EventPage>
}

export interface ThreadState {
  phase: "loading" | "ready" | "gone" | "refused"
  /** of "refused", what was thrown */
  problem: unknown
  conversation: Conversation
  outlines: ReadonlyMap<string, Outline>
  runs: ReadonlyMap<string, Run>
  words: ReadonlyMap<string, Words>
  /** runs whose events are being read; the value is what was thrown when that failed */
  reading: ReadonlyMap<string, unknown>
  older: "none" | "more" | "reading"
}

/** How long a page waits for its socket before it shows what REST has, without what is new. */
const patience = 1500
const frame = 16

export class Thread implements Store<ThreadState> {
  #state: ThreadState
  readonly #id: string
  readonly #client: LiveClient
  readonly #source: Source
  readonly #listeners = new Set<() => void>()
  #shown: ThreadState
  #timer: ReturnType<typeof setTimeout> | undefined
  #late: ReturnType<typeof setTimeout> | undefined
  #stop: (() => void) | null = null
  #cursor: string | null = null
  /** counts what was forgotten: an answer to a question of before is dropped */
  #life = 0
  /** events that came while pages or runs were being read */
  #heard = new Set<LogEvent[]>()

  constructor(id: string, client: LiveClient, source: Source) {
    this.#id = id
    this.#client = client
    this.#source = source
    this.#state = this.#shown = empty(id)
  }

  readonly get = (): ThreadState => this.#shown

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (!this.#stop) this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#end()
    }
  }

  #start(): void {
    this.#late = setTimeout(() => void this.#read(), patience)
    this.#stop = this.#client.watch(this.#id, "head", {
      began: () => void this.#read(),
      events: (events) => this.#take(events),
      delta: (delta) => this.#hear(delta),
      forget: () => this.#reset(),
      ended: () => this.#set({ phase: "gone" }),
    })
  }

  #end(): void {
    this.#stop?.()
    this.#stop = null
    this.#reset()
  }

  #reset(): void {
    this.#life++
    clearTimeout(this.#late)
    this.#heard.clear()
    this.#cursor = null
    this.#set(empty(this.#id))
  }

  #set(change: Partial<ThreadState>): void {
    this.#state = { ...this.#state, ...change }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#shown = this.#state
      for (const listener of [...this.#listeners]) listener()
    }, frame)
  }

  /** Reads the newest page, and wholly the runs that have not ended. */
  async #read(): Promise<void> {
    clearTimeout(this.#late)
    const answer = await this.#asking(() => this.#source.turns(null))
    if (!answer) return
    if ("thrown" in answer) {
      if (this.#state.phase !== "ready") this.#set({ phase: "refused", problem: answer.thrown })
      return
    }
    this.#cursor = answer.got.older // pages that are read again change nothing
    this.#takePage(answer.got, answer.heard)
    this.#set({ phase: "ready", problem: null, older: this.#cursor ? "more" : "none" })
    for (const [run, outline] of answer.got.outlines) if (!ended(outline.status)) void this.readRun(run)
  }

  /** Reads again after a refusal. */
  readonly again = (): void => {
    this.#set({ phase: "loading", problem: null })
    void this.#read()
  }

  /** Reads the page before the oldest turn. */
  readonly older = async (): Promise<void> => {
    if (this.#state.older !== "more" || !this.#cursor) return
    const cursor = this.#cursor
    this.#set({ older: "reading" })
    const answer = await this.#asking(() => this.#source.turns(cursor))
    if (!answer) return
    if ("thrown" in answer) return this.#set({ older: "more" })
    this.#cursor = answer.got.older
    this.#takePage(answer.got, answer.heard)
    this.#set({ older: this.#cursor ? "more" : "none" })
    for (const [run, outline] of answer.got.outlines) if (!ended(outline.status)) void this.readRun(run)
  }

  #takePage(page: TurnPage, heard: LogEvent[]): void {
    const conversation = refold(withPage(this.#state.conversation, page.turns), heard)
    this.#set({ conversation, outlines: new Map([...this.#state.outlines, ...page.outlines]) })
  }

  /** Asks, and keeps what is heard meanwhile. Null when everything was forgotten before the answer came. */
  async #asking<T>(ask: () => Promise<T>): Promise<{ got: T; heard: LogEvent[] } | { thrown: unknown } | null> {
    const heard: LogEvent[] = []
    const life = this.#life
    this.#heard.add(heard)
    try {
      const got = await ask()
      return life === this.#life ? { got, heard } : null
    } catch (thrown) {
      return life === this.#life ? { thrown } : null
    } finally {
      this.#heard.delete(heard)
    }
  }

  /** Reads a run wholly: from where its known events end, until nothing is missing. */
  readonly readRun = async (id: string): Promise<void> => {
    if (this.#state.reading.has(id) && this.#state.reading.get(id) === undefined) return
    this.#set({ reading: new Map(this.#state.reading).set(id, undefined) })
    const answer = await this.#asking(() => this.#eventsOf(id))
    if (!answer) return
    const reading = new Map(this.#state.reading)
    reading.delete(id)
    if ("thrown" in answer) return this.#set({ reading: reading.set(id, answer.thrown) })
    this.#set({ reading })
    const late = answer.heard.filter((e) => streamId(e.stream, "run") === id)
    this.#takeRun(id, [...answer.got, ...late])
  }

  async #eventsOf(id: string): Promise<LogEvent[]> {
    const all: LogEvent[] = []
    let after = this.#state.runs.get(id)?.positions.at(-1) ?? 0
    for (;;) {
      const page = await this.#source.runEvents(id, after)
      all.push(...page.events)
      if (!page.more) return all
      after = page.next
    }
  }

  #take(events: LogEvent[]): void {
    for (const heard of this.#heard) heard.push(...events)
    let conversation = this.#state.conversation
    const ofRuns = new Map<string, LogEvent[]>()
    for (const e of events) {
      conversation = foldConversation(conversation, e)
      const run = streamId(e.stream, "run")
      if (run) ofRuns.set(run, [...(ofRuns.get(run) ?? []), e])
    }
    if (conversation !== this.#state.conversation) this.#set({ conversation })
    for (const [run, all] of ofRuns) this.#takeRun(run, all)
  }

  /** Folds events of a run in the order of its stream; what is missing between them is read first. */
  #takeRun(id: string, events: LogEvent[]): void {
    let run = this.#state.runs.get(id) ?? null
    for (const e of events) {
      if (e.version > (run?.version ?? 0) + 1) {
        void this.readRun(id)
        break
      }
      run = foldRun(run, e)
    }
    if (!run || run === this.#state.runs.get(id)) return
    this.#set({ runs: new Map(this.#state.runs).set(id, run) })
    this.#say(id, ended(run.status) ? null : settle(this.#state.words.get(id) ?? null, run.steps.length))
  }

  #hear(delta: Delta): void {
    const run = this.#state.runs.get(delta.run)
    if (run && ended(run.status)) return
    this.#say(delta.run, hear(this.#state.words.get(delta.run) ?? null, delta, run?.steps.length ?? 0))
  }

  #say(id: string, said: Words | null): void {
    if (said === (this.#state.words.get(id) ?? null)) return
    const words = new Map(this.#state.words)
    if (said) words.set(id, said)
    else words.delete(id)
    this.#set({ words })
  }
}

function empty(id: string): ThreadState {
  const none = new Map<string, never>()
  return {
    phase: "loading",
    problem: null,
    conversation: newConversation(id),
    outlines: none,
    runs: none,
    words: none,
    reading: none,
    older: "none",
  }
}
