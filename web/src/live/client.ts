// The one WebSocket of a page: docs/reference/live.md from the client's side. It says who it is by cookie
// alone, so that no token is ever in an address or in a script.
//
//   idle --first topic--> connecting --hello--> open --close--> lost --wait--> connecting
//                                                 |                 (any other replica will do)
//                                                 +-- 4401, 4403 --> signed_out;  4400, 1009 --> faulted
//
// It may use nothing of React: pages read its stores.

import { type Connection, Value } from "./connection"
import { parseFrames, type Frame, type Hello, type LogEvent } from "./frame"
import { planAfter } from "./retry"
import { Topic, type From, type Watcher } from "./topic"

/** What the client needs of its surroundings. */
export interface Surroundings {
  url: string
  open(url: string): WebSocket
  random(): number
  now(): number
  offline(): boolean
}

export const browser: Surroundings = {
  get url() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:"
    return `${scheme}//${location.host}/api/v1/live`
  },
  open: (url) => new WebSocket(url),
  random: Math.random,
  now: Date.now,
  offline: () => !navigator.onLine,
}

/** The server closes after 10 s without a credential (4401); only a dead path takes longer than this. */
const helloWithin = 15_000
/** Until hello says otherwise. */
const usualSilence = 5000

export class LiveClient {
  readonly connection = new Value<Connection>({ phase: "idle" })
  /** How far this page knows the log. */
  readonly position = new Value(0)

  readonly #topics = new Map<string, Topic>()
  #socket: WebSocket | null = null
  #hello: Hello | null = null
  #log = ""
  #heardAt: number | null = null
  #failures = 0
  #wait: ReturnType<typeof setTimeout> | undefined
  #watch: ReturnType<typeof setTimeout> | undefined

  readonly #around: Surroundings

  constructor(around: Surroundings = browser) {
    this.#around = around
  }

  /** Watches a topic, and answers how to stop. One watcher a topic: pages share what they fold. */
  watch(id: string, from: From, watcher: Watcher): () => void {
    if (this.#topics.has(id)) throw new Error(`topic ${id} is watched already`)
    const topic = new Topic(id, from, watcher)
    this.#topics.set(id, topic)
    if (this.#hello) this.#ask(topic)
    else if (!this.#socket && this.#wait === undefined) this.#connect()
    return () => this.#forgo(topic)
  }

  #forgo(topic: Topic): void {
    if (this.#topics.get(topic.id) !== topic) return
    this.#topics.delete(topic.id)
    if (this.#hello && topic.state !== "ended") this.#send({ type: "unsubscribe", topic: topic.id })
  }

  /** Connects at once: the network came back, the page is looked at again, or the person asked for it. */
  readonly retryNow = (): void => {
    const phase = this.connection.get().phase
    if (phase === "signed_out" || phase === "faulted" || this.#topics.size === 0) return
    if (this.#socket && !this.#overdue()) return
    this.#failures = 0
    this.#drop()
    this.#connect()
  }

  /** After signing in again, everything goes on where it stopped. */
  readonly signedIn = (): void => {
    if (this.connection.get().phase !== "signed_out") return
    this.#failures = 0
    this.#connect()
  }

  /** Follows the page: network, visibility, and its return from the browser's cache of pages. Answers how to stop. */
  attach(page: Pick<Window, "addEventListener" | "removeEventListener">, document: Document): () => void {
    const seen = () => document.visibilityState === "visible" && this.retryNow()
    const offline = () => {
      const now = this.connection.get()
      if (now.phase === "lost") this.connection.set({ ...now, offline: true })
    }
    page.addEventListener("online", this.retryNow)
    page.addEventListener("offline", offline)
    page.addEventListener("pageshow", seen)
    document.addEventListener("visibilitychange", seen)
    return () => {
      page.removeEventListener("online", this.retryNow)
      page.removeEventListener("offline", offline)
      page.removeEventListener("pageshow", seen)
      document.removeEventListener("visibilitychange", seen)
    }
  }

  /** Ends the connection and forgets all topics. */
  close(): void {
    this.#topics.clear()
    this.#drop()
    this.connection.set({ phase: "idle" })
  }

  #connect(): void {
    clearTimeout(this.#wait)
    this.#wait = undefined
    if (this.connection.get().phase !== "lost") this.connection.set({ phase: "connecting" })
    let socket: WebSocket
    try {
      socket = this.#around.open(this.#around.url)
    } catch (error) {
      this.connection.set({ phase: "faulted", message: String(error) })
      return
    }
    this.#socket = socket
    const mine = (act: () => void) => () => this.#socket === socket && act()
    socket.onmessage = (m) => mine(() => this.#receive(m.data))()
    socket.onclose = (c) => mine(() => this.#closed(c.code, c.reason))()
    socket.onerror = null // a close follows, which says more
    this.#expect(helloWithin)
  }

  /** Starts the watch anew: when nothing is heard within the time, the connection is dead whatever TCP thinks. */
  #expect(ms: number): void {
    clearTimeout(this.#watch)
    this.#watch = setTimeout(() => this.#closed(1006, ""), ms)
  }

  #overdue(): boolean {
    const limit = 2 * (this.#hello?.silence_ms ?? usualSilence)
    return this.#hello !== null && this.#around.now() - (this.#heardAt ?? 0) > limit
  }

  #receive(message: unknown): void {
    const frames = parseFrames(message)
    if (!frames) return this.#fault("the server sent what is no list of frames")
    this.#heardAt = this.#around.now()
    const socket = this.#socket
    for (let i = 0; i < frames.length && this.#socket === socket; i++) {
      const frame = frames[i]!
      if (frame.type === "event") i = this.#events(frames, i)
      else this.#handle(frame)
    }
    if (this.#socket === socket) this.#expect(2 * (this.#hello?.silence_ms ?? usualSilence))
  }

  #handle(frame: Exclude<Frame, { type: "event" }>): void {
    if (frame.type === "hello") return this.#greeted(frame)
    if (!this.#hello) return
    if (frame.type === "ping") {
      this.#failures = 0
      for (const topic of this.#topics.values()) if (topic.state === "live") topic.advance(frame.position)
      return this.#reached(frame.position)
    }
    if (frame.type === "live") {
      this.#failures = 0
      this.#reached(frame.position)
    }
    if (!("topic" in frame)) return
    const topic = this.#topics.get(frame.topic)
    if (topic && topic.state !== "ended" && topic.handle(frame, this.#hello)) this.#ask(topic)
  }

  /** Hands on the events of one topic that stand together: a page renders once for them. */
  #events(frames: Frame[], start: number): number {
    const first = frames[start] as { topic: string }
    const run: LogEvent[] = []
    let i = start
    for (; i < frames.length; i++) {
      const frame = frames[i]!
      if (frame.type !== "event" || frame.topic !== first.topic) break
      run.push(frame)
    }
    this.#failures = 0
    const topic = this.#topics.get(first.topic)
    // What was on its way when a topic was given up, or when it was asked for anew, belongs to nobody.
    if (topic && (topic.state === "replaying" || topic.state === "live")) topic.deliver(run)
    this.#reached(run.at(-1)!.position)
    return i - 1
  }

  #greeted(hello: Hello): void {
    if (hello.protocol !== 1) return this.#fault(`protocol ${hello.protocol} is newer than this page: load it again`)
    if (this.#log !== `${hello.log_id} ${hello.incarnation}`) this.position.set(0)
    this.#log = `${hello.log_id} ${hello.incarnation}`
    this.#hello = hello
    this.#reached(hello.head)
    this.connection.set({ phase: "open" })
    for (const topic of this.#topics.values()) if (topic.state !== "ended") this.#ask(topic)
  }

  #ask(topic: Topic): void {
    if (this.#hello) this.#send(topic.order(this.#hello, this.position.get()))
  }

  #send(message: object): void {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(message))
  }

  #reached(position: number): void {
    if (position > this.position.get()) this.position.set(position)
  }

  #fault(message: string): void {
    this.#drop()
    this.connection.set({ phase: "faulted", message })
  }

  /** Lets go of the socket without waiting for its close: a dead one would take minutes. */
  #drop(): void {
    clearTimeout(this.#watch)
    clearTimeout(this.#wait)
    this.#wait = undefined
    const socket = this.#socket
    this.#socket = this.#hello = null
    if (socket) {
      socket.onmessage = socket.onclose = null
      socket.close()
    }
    for (const topic of this.#topics.values()) topic.lost()
  }

  #closed(code: number, reason: string): void {
    this.#drop()
    const plan = planAfter(code, reason, this.#failures, this.#around.random)
    if (plan.do === "login") return this.connection.set({ phase: "signed_out" })
    if (plan.do === "stop") return this.connection.set({ phase: "faulted", message: plan.message })
    if (plan.do === "start_over") {
      this.position.set(0)
      for (const topic of this.#topics.values()) topic.forget()
    }
    this.#failures++
    const retryAt = this.#around.now() + plan.waitMs
    this.connection.set({ phase: "lost", heardAt: this.#heardAt, retryAt, offline: this.#around.offline() })
    this.#wait = setTimeout(() => this.#connect(), plan.waitMs)
  }
}
