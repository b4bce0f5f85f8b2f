// What a page may say about its connection: a store in the shape that useSyncExternalStore wants.

export type Connection =
  /** the first attempt is under way: nothing was promised yet */
  | { phase: "connecting" }
  | { phase: "open" }
  /** lost: what is shown was true at `heardAt` (milliseconds since 1970; null: never heard) */
  | { phase: "lost"; heardAt: number | null; retryAt: number | null; offline: boolean }
  | { phase: "signed_out" }
  /** the server refused this client's own messages; only a newer page can help */
  | { phase: "faulted"; message: string }
  /** the page needs no connection */
  | { phase: "idle" }

export interface Store<T> {
  get(): T
  subscribe(listener: () => void): () => void
}

export class Value<T> implements Store<T> {
  readonly #listeners = new Set<() => void>()
  #value: T

  constructor(value: T) {
    this.#value = value
  }

  readonly get = (): T => this.#value

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    for (const listener of [...this.#listeners]) listener()
  }
}
