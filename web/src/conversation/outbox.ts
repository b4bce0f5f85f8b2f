// Messages on their way. Each has a key under which the server posts it once, however often it is sent; so what
// got no answer is sent again until there is one, also after the page was loaded again.
//
//   sending --answer--> posted --its event--> (gone: the message itself is shown)
//      |  ^-- no answer: waits, or the connection is back
//      +-- refused: stays, says why, until somebody sends it again or takes it back

import type { Store } from "../live/connection"
import type { Turn } from "../fold/conversation"

export interface Pending {
  key: string
  text: string
  at: string
  state: "sending" | "posted" | "refused"
  /** how far the log was known when it was sent: its event comes later */
  after: number
  /** once posted */
  message: string | null
  /** once refused */
  problem: unknown
}

/** Sends one message. It throws a refusal, or an error of which `mayRepeat` says that nothing is known. */
export type Post = (text: string, key: string) => Promise<{ message_id: string }>

export interface Shelf {
  read(): string | null
  write(value: string | null): void
}

const longest = 15_000

export class Outbox implements Store<readonly Pending[]> {
  readonly #post: Post
  readonly #shelf: Shelf
  readonly #mayRepeat: (thrown: unknown) => boolean
  readonly #listeners = new Set<() => void>()
  readonly #waiting = new Map<string, { timer: ReturnType<typeof setTimeout>; go: () => void }>()
  #all: readonly Pending[]

  constructor(post: Post, shelf: Shelf, mayRepeat: (thrown: unknown) => boolean) {
    this.#post = post
    this.#shelf = shelf
    this.#mayRepeat = mayRepeat
    this.#all = kept(shelf.read())
    for (const one of this.#all) if (one.state === "sending") void this.#deliver(one.key, 0)
  }

  readonly get = (): readonly Pending[] => this.#all

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  send(text: string, key: string, after: number, at: string): void {
    this.#set([...this.#all, { key, text, at, state: "sending", after, message: null, problem: null }])
    void this.#deliver(key, 0)
  }

  /** Sends again what was refused, under its key: had it been done, it would not be done twice. */
  again(key: string): void {
    this.#change(key, { state: "sending", problem: null })
    void this.#deliver(key, 0)
  }

  takeBack(key: string): void {
    this.#set(this.#all.filter((one) => one.key !== key || one.state === "sending"))
  }

  /** Tries at once whatever waits: the connection is back. */
  readonly hurry = (): void => {
    for (const { timer, go } of [...this.#waiting.values()]) {
      clearTimeout(timer)
      go()
    }
  }

  /** Lets go of messages whose event is there. */
  settle(turns: readonly Turn[]): void {
    const left = this.#all.filter((one) => !one.message || !turns.some((turn) => turn.message === one.message))
    if (left.length !== this.#all.length) this.#set(left)
  }

  async #deliver(key: string, failures: number): Promise<void> {
    const one = this.#all.find((p) => p.key === key)
    if (!one) return
    try {
      const { message_id } = await this.#post(one.text, key)
      this.#change(key, { state: "posted", message: message_id })
    } catch (thrown) {
      if (!this.#mayRepeat(thrown)) return this.#change(key, { state: "refused", problem: thrown })
      const go = () => {
        this.#waiting.delete(key)
        void this.#deliver(key, failures + 1)
      }
      this.#waiting.set(key, { timer: setTimeout(go, Math.min(longest, 500 * 2 ** failures)), go })
    }
  }

  #change(key: string, change: Partial<Pending>): void {
    this.#set(this.#all.map((one) => (one.key === key ? { ...one, ...change } : one)))
  }

  #set(all: readonly Pending[]): void {
    this.#all = all
    this.#shelf.write(all.length ? JSON.stringify(all.map((one) => ({ ...one, problem: null }))) : null)
    for (const listener of [...this.#listeners]) listener()
  }
}

/**
 * What is to be shown beside the turns. An event may come before the answer to its request: it is known by its
 * author and its text, and by being newer than the sending; each event stands for one message. Only an answer
 * ends the sending itself: two messages may have the same words.
 */
export function visible(all: readonly Pending[], turns: readonly Turn[], me: string): readonly Pending[] {
  const free = new Set(turns)
  for (const turn of turns) if (all.some((one) => one.message === turn.message)) free.delete(turn)
  return all.filter((one) => {
    if (one.message) return !turns.some((turn) => turn.message === one.message)
    if (one.state === "refused") return true
    const same = [...free].find((t) => t.author === me && t.text === one.text && (t.positions[0] ?? 0) > one.after)
    if (same) free.delete(same)
    return !same
  })
}

function kept(stored: string | null): Pending[] {
  try {
    const parsed: unknown = JSON.parse(stored ?? "[]")
    const whole = (p: unknown) => typeof p === "object" && p !== null && "key" in p && "text" in p && "state" in p
    // What was posted is in the conversation that is about to be read.
    return Array.isArray(parsed) && parsed.every(whole) ? (parsed as Pending[]).filter((p) => p.state !== "posted") : []
  } catch {
    return []
  }
}
