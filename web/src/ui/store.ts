import { useSyncExternalStore } from "react"

/** One value outside of React that components follow. */
export type Store<T> = { get: () => T; set: (value: T) => void; use: () => T }

export function createStore<T>(initial: T): Store<T> {
  let value = initial
  const listeners = new Set<() => void>()
  const get = () => value
  const subscribe = (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return {
    get,
    set: (next) => {
      if (Object.is(next, value)) return
      value = next
      for (const listener of listeners) listener()
    },
    use: () => useSyncExternalStore(subscribe, get),
  }
}

/** A small setting that this browser keeps, if it keeps any. */
export const kept = {
  get(name: string): string | null {
    try {
      return localStorage.getItem(`cairn.${name}`)
    } catch {
      return null
    }
  },
  set(name: string, value: string | null) {
    try {
      if (value === null) localStorage.removeItem(`cairn.${name}`)
      else localStorage.setItem(`cairn.${name}`, value)
    } catch {
      // It is forgotten with the page.
    }
  },
}
