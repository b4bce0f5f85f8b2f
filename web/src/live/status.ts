import { createStore } from "../ui/store"

/**
 * How the live connection is, and the position in the log that the page shows. The frame shows both once they are
 * known; whoever holds the connection sets them.
 */
export type LiveStatus = {
  state: "off" | "connecting" | "live" | "lost" | "faulted"
  position: number | null
}

export const liveStatus = createStore<LiveStatus>({ state: "off", position: null })
