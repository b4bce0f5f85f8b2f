// The frames of docs/reference/live.md, protocol 1, as a browser sees them.

import type { LiveDelta, LiveEnded, LiveEvent, LiveFrame, LiveHello } from "../gen/live"

/** An event as the log shows it: the same fields in REST answers and in live frames. */
export type LogEvent = Omit<LiveEvent, "type" | "topic">
export type Frame = LiveFrame
export type Hello = LiveHello
export type Delta = LiveDelta
export type EndedCode = LiveEnded["code"]

/** A place in one life of one log. */
export interface Cursor {
  logId: string
  incarnation: number
  position: number
}

/**
 * Reads a message of the server: a list of frames. Null when it is none, which a client may not guess about.
 * Frames of types that this client does not know stay in the list; whoever handles them passes them over.
 */
export function parseFrames(message: unknown): Frame[] | null {
  if (typeof message !== "string") return null
  try {
    const frames: unknown = JSON.parse(message)
    const each = (f: unknown) => typeof f === "object" && f !== null && "type" in f
    return Array.isArray(frames) && frames.every(each) ? (frames as Frame[]) : null
  } catch {
    return null
  }
}
