// One topic of a page, and how far it has been sent.
//
//   wanted --hello--> asked --subscribed--> replaying --live--> live
//      ^                 |                      |                 |
//      +-- socket gone --+----------------------+-----------------+      resync: asked again, from where it stopped
//                        +---------- ended ------> ended (for ever: the page says so)

import type { Cursor, Delta, EndedCode, Frame, Hello, LogEvent } from "./frame"

/** What a page does with a topic. All are called in the order of the frames. */
export interface Watcher {
  /** Events in the order of the log, at least one, each once. */
  events(events: LogEvent[]): void
  /** Words while a model speaks; they may be lost, and are no fact. */
  delta?(delta: Delta): void
  /** Once, and again after `forget`: everything after this position follows. For 'head', what is before it is read otherwise. */
  began?(cursor: Cursor): void
  /** Everything up to the position was sent. */
  live?(position: number): void
  /** Positions mean something else now: forget all of it. Events from the beginning follow, or `began`. */
  forget(): void
  ended(code: EndedCode, message: string): void
}

/** 'start': all events. 'head': from now on. A cursor: after it. */
export type From = "start" | "head" | Cursor

export class Topic {
  state: "wanted" | "asked" | "replaying" | "live" | "ended" = "wanted"
  #cursor: Cursor | null
  #fresh = true

  readonly id: string
  readonly from: From
  readonly watcher: Watcher

  constructor(id: string, from: From, watcher: Watcher) {
    this.id = id
    this.from = from
    this.watcher = watcher
    this.#cursor = typeof from === "object" ? from : null
  }

  get position(): number {
    return this.#cursor?.position ?? 0
  }

  /** The message that asks for what this topic lacks. `head` is a position that the server is known to have passed. */
  order(hello: Hello, head: number): object {
    if (this.#cursor && !sameLog(this.#cursor, hello)) this.forget()
    if (!this.#cursor && this.from === "head") this.#cursor = cursorOf(hello, head)
    this.state = "asked"
    const base = { type: "subscribe", topic: this.id }
    const cursor = this.#cursor
    if (!cursor || cursor.position === 0) return { ...base, after: 0 }
    return { ...base, after: cursor.position, log_id: cursor.logId, incarnation: cursor.incarnation }
  }

  /** Answers whether the topic has to be asked for again. */
  handle(frame: Frame, hello: Hello): boolean {
    switch (frame.type) {
      case "subscribed":
        this.state = "replaying"
        this.#cursor ??= cursorOf(hello, frame.position)
        if (this.#fresh) this.watcher.began?.(cursorOf(hello, frame.position))
        this.#fresh = false
        return false
      case "live":
        this.state = "live"
        this.advance(frame.position)
        this.watcher.live?.(frame.position)
        return false
      case "delta":
        this.watcher.delta?.(frame)
        return false
      case "resync":
        if (this.#cursor) this.#cursor = { ...this.#cursor, position: frame.position }
        return true
      case "ended":
        this.state = "ended"
        this.watcher.ended(frame.code, frame.message)
        return false
      default:
        return false
    }
  }

  /** Passes on what is new. The server repeats nothing; a client that trusts itself alone checks. */
  deliver(events: LogEvent[]): void {
    const last = this.position
    const news = events.filter((e, i) => e.position > (events[i - 1]?.position ?? last) && e.position > last)
    const newest = news.at(-1)
    if (!newest) return
    this.advance(newest.position)
    this.watcher.events(news)
  }

  advance(position: number): void {
    if (this.#cursor && position > this.#cursor.position) this.#cursor = { ...this.#cursor, position }
  }

  forget(): void {
    this.#cursor = null
    this.#fresh = true
    if (this.state === "ended") return
    this.state = "wanted"
    this.watcher.forget()
  }

  lost(): void {
    if (this.state !== "ended") this.state = "wanted"
  }
}

function cursorOf(hello: Hello, position: number): Cursor {
  return { logId: hello.log_id, incarnation: hello.incarnation, position }
}

function sameLog(cursor: Cursor, hello: Hello): boolean {
  return cursor.logId === hello.log_id && cursor.incarnation === hello.incarnation
}
