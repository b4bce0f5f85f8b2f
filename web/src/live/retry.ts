// What a client does after a socket closed: the table "Close codes" of docs/reference/live.md.

export type Plan =
  /** the page asks the person to sign in */
  | { do: "login" }
  /** a fault of this client: repeating it would repeat the fault */
  | { do: "stop"; message: string }
  /** forget all positions, then connect */
  | { do: "start_over"; waitMs: number }
  | { do: "again"; waitMs: number }

interface Reason {
  message: string
  retryMs: number | null
}

/** Reads the JSON of a close reason; a plain text or none is a reason without a hint. */
export function readReason(reason: string): Reason {
  try {
    const parsed: unknown = JSON.parse(reason)
    if (typeof parsed === "object" && parsed !== null) {
      const { message, retry_ms: retry } = parsed as { message?: unknown; retry_ms?: unknown }
      const hint = typeof retry === "number" && retry >= 0 ? retry : null
      return { message: typeof message === "string" ? message : "", retryMs: hint }
    }
  } catch {
    // A reason in plain text, as 1009 has it.
  }
  return { message: reason, retryMs: null }
}

export const longestWait = 30_000

/** A random time of up to a second, doubling with every failure up to 30 s: not all clients at once. */
export function jitter(failures: number, random: () => number): number {
  return Math.round(random() * Math.min(longestWait, 1000 * 2 ** Math.min(failures, 10)))
}

/** failures: how often connecting failed since the log was last heard, 0 for the first time. */
export function planAfter(code: number, reason: string, failures: number, random: () => number): Plan {
  const { message, retryMs } = readReason(reason)
  const hinted = retryMs ?? jitter(failures, random)
  switch (code) {
    case 4401:
    case 4403:
      return { do: "login" }
    case 4400:
    case 1009:
      return { do: "stop", message }
    case 4409:
      return { do: "start_over", waitMs: jitter(failures, random) }
    case 4408:
    case 4429:
    case 4503:
      return { do: "again", waitMs: hinted }
    case 4500:
      return { do: "again", waitMs: Math.min(longestWait, hinted * 2 ** Math.min(failures, 10)) }
    default:
      return { do: "again", waitMs: jitter(failures, random) }
  }
}
