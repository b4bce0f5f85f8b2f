// The log of one run as its page shows it: all its events from REST, and after them those that come over the socket.
//
//   loading --all pages read--> ready        refused: the first page could not be read
//      ^                          |          gone: the topic ended; what is shown is as it was
//      +--------- forget ---------+
//
// It may use live and fold, and nothing of React.

import { hear, settle, type Words } from "../fold/words"
import { foldRun, type Run } from "../fold/run"
import type { LiveClient } from "../live/client"
import type { Store } from "../live/connection"
import type { Delta, LogEvent } from "../live/frame"

export interface EventPage {
  events: LogEvent[]
  next: number
  more: boolean
}

export interface LogState {
  phase: "loading" | "ready" | "refused" | "gone"
  problem: unknown
  /** in the order of the log */
  events: readonly LogEvent[]
  run: Run | null
  /** what the model is saying, before it is a fact */
  words: Words | null
}

/** How long a page waits for its socket before it shows what REST has (milliseconds). */
const patience = 1500
/** How often what is shown may change (milliseconds). */
const frame = 32
const nothing: LogState = { phase: "loading", problem: null, events: [], run: null, words: null }

export class RunLog implements Store<LogState> {
  readonly #stream: string
  readonly #topic: string
  readonly #client: Pick<LiveClient, "watch">
  readonly #read: (after: number) => Promise<EventPage>
  readonly #listeners = new Set<() => void>()
  #state = nothing
  #shown = nothing
  #stop: (() => void) | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #late: ReturnType<typeof setTimeout> | undefined
  /** events that came while pages were read; null when none are being read */
  #heard: LogEvent[] | null = null
  /** counts what was forgotten: an answer to a question of before is dropped */
  #life = 0

  constructor(run: string, topic: string, client: Pick<LiveClient, "watch">, read: (after: number) => Promise<EventPage>) {
    this.#stream = `run/${run}`
    this.#topic = topic
    this.#client = client
    this.#read = read
  }

  readonly get = (): LogState => this.#shown

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (!this.#stop) this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#stop?.()
      this.#stop = null
      this.#forget()
    }
  }

  /** Reads again after a refusal. */
  readonly again = (): void => {
    this.#set({ phase: "loading", problem: null })
    void this.#readAll()
  }

  #start(): void {
    this.#late = setTimeout(() => void this.#readAll(), patience)
    this.#stop = this.#client.watch(this.#topic, "head", {
      began: () => void this.#readAll(),
      events: (events) => this.#take(events),
      delta: (delta) => this.#hear(delta),
      forget: () => this.#forget(),
      ended: () => this.#set({ phase: this.#state.events.length > 0 ? "gone" : this.#state.phase }),
    })
  }

  #forget(): void {
    this.#life++
    clearTimeout(this.#late)
    this.#heard = null
    this.#set(nothing)
  }

  #set(change: Partial<LogState>): void {
    this.#state = { ...this.#state, ...change }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#shown = this.#state
      for (const listener of [...this.#listeners]) listener()
    }, frame)
  }

  async #readAll(): Promise<void> {
    clearTimeout(this.#late)
    const life = ++this.#life
    this.#heard ??= []
    try {
      for (let more = true; more; ) {
        const page = await this.#read(this.#state.events.at(-1)?.position ?? 0)
        if (life !== this.#life) return
        this.#append(page.events)
        more = page.more && page.events.length > 0
      }
    } catch (thrown) {
      if (life !== this.#life) return
      if (this.#state.events.length === 0) return this.#set({ phase: "refused", problem: thrown })
    }
    const heard = this.#heard ?? []
    this.#heard = null
    this.#append(heard)
    this.#set({ phase: "ready" })
  }

  #take(events: LogEvent[]): void {
    const own = events.filter((e) => e.stream === this.#stream)
    if (own.length === 0) return
    if (this.#heard) this.#heard.push(...own)
    else this.#append(own)
  }

  #append(events: readonly LogEvent[]): void {
    const last = this.#state.events.at(-1)?.position ?? 0
    const news = events.filter((e) => e.position > last)
    if (news.length === 0) return
    const run = news.reduce(foldRun, this.#state.run)
    this.#set({ events: [...this.#state.events, ...news], run, words: settle(this.#state.words, run?.steps.length ?? 0) })
  }

  #hear(delta: Delta): void {
    if (`run/${delta.run}` !== this.#stream) return
    const words = hear(this.#state.words, delta, this.#state.run?.steps.length ?? 0)
    if (words !== this.#state.words) this.#set({ words })
  }
}
