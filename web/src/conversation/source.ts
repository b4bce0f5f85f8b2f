import { api, ok, type Schema } from "../api/client"
import type { Turn } from "../fold/conversation"
import type { Text } from "../fold/data"
import type { LogEvent } from "../live/frame"
import type { Outline, Source } from "./thread"

/** Turns of one page. A page is what one sees at once, and some more. */
const pageSize = 50

/** Null in an answer is text that was erased; in a message there is always some. */
const said = (text: string | null): Text => text ?? { erased: true }

/** Reads a conversation from the REST interface. */
export function sourceOf(conversation: string): Source {
  return {
    turns: async (cursor) => {
      const query = { limit: pageSize, cursor: cursor ?? undefined }
      const page = await ok(api.GET("/api/v1/conversations/{conversation}/messages", { params: { path: { conversation }, query } }))
      const items = page.items.toReversed()
      return { turns: items.map(turnOf), outlines: new Map(items.map((m) => [m.run_id, outlineOf(m)])), older: page.next_cursor }
    },
    runEvents: async (run, after) => {
      const page = await ok(api.GET("/api/v1/runs/{run}/events", { params: { path: { run }, query: { after, limit: 500 } } }))
      return { events: page.events as unknown as LogEvent[], next: page.next_after, more: page.more }
    },
  }
}

function turnOf(m: Schema["Message"]): Turn {
  return {
    turn: m.turn_id,
    message: m.message_id,
    run: m.run_id,
    author: m.author,
    text: said(m.text),
    postedAt: m.posted_at,
    state: m.state,
    number: m.turn_number,
    positions: [],
  }
}

function outlineOf(m: Schema["Message"]): Outline {
  return { status: m.run_state, answer: m.run_state === "succeeded" ? said(m.answer) : null, failureCode: m.failure_code ?? "" }
}
