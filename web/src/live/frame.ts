// The frames of docs/reference/live.md, protocol 1, as a browser sees them.

/** An event as the log shows it: the same fields in REST answers and in live frames. */
export interface LogEvent {
  position: number
  /** "run/ID" */
  stream: string
  /** counts in the stream, from 1 */
  version: number
  kind: string
  schema: number
  at: string
  actor: string
  data: Record<string, unknown>
}

export interface Hello {
  type: "hello"
  protocol: number
  log_id: string
  incarnation: number
  head: number
  silence_ms: number
}

export interface Delta {
  type: "delta"
  topic: string
  run: string
  epoch: number
  step: number
  attempt: number
  from: number
  seq: number
  text: string
}

export type EndedCode = "not_found" | "access_ended" | "too_many_topics"

export type Frame =
  | Hello
  | ({ type: "event"; topic: string } & LogEvent)
  | { type: "subscribed" | "live" | "unsubscribed" | "resync"; topic: string; position: number }
  | { type: "ended"; topic: string; position: number; code: EndedCode; message: string }
  | { type: "ping"; position: number }
  | Delta

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
