// Rows of the lists, kept by the events of the topic "<space>/activity": the rules of db/projection, on rows in
// the shape in which REST answers them. A row says at which version of its stream it was read, so that an event
// that the row has in it already changes nothing.

import type { LogEvent } from "../live/frame"
import { num, str, text } from "./data"
import { streamId } from "./run"

export interface ConversationRow {
  conversation_id: string
  agent_id: string
  title: string | null
  turns: number
  waiting: number
  active_run_id: string | null
  opened_by: string
  opened_at: string
  changed_at: string
  version: number
}

/** Null for an event that opens nothing and has no row to change. */
export function foldConversationRow<R extends ConversationRow>(row: R | null, e: LogEvent): R | ConversationRow | null {
  if (!row) return e.kind === "conversation.opened" ? opened(e) : null
  if (e.version <= row.version) return row
  const next = { ...row, version: e.version, changed_at: e.at }
  const d = e.data
  const run = str(d.run)
  switch (e.kind) {
    case "conversation.message_posted":
      return { ...next, waiting: row.waiting + 1 }
    case "conversation.turn_started":
      return { ...next, waiting: row.waiting - 1, turns: num(d.number), active_run_id: run }
    case "conversation.turn_ended": // one that never started leaves the queue instead
      return row.active_run_id === run ? { ...next, active_run_id: null } : { ...next, waiting: row.waiting - 1 }
    default:
      return { ...row, version: e.version }
  }
}

function opened(e: LogEvent): ConversationRow {
  const title = text(e.data.title)
  return {
    conversation_id: streamId(e.stream, "conversation") ?? "",
    agent_id: str(e.data.agent),
    title: typeof title === "string" ? title : null,
    turns: 0,
    waiting: 0,
    active_run_id: null,
    opened_by: e.actor,
    opened_at: e.at,
    changed_at: e.at,
    version: e.version,
  }
}

/** The list with one event in it, the last changed first. The same list when it says nothing about its rows. */
export function foldConversationList<R extends ConversationRow>(
  rows: readonly (R | ConversationRow)[],
  e: LogEvent,
): readonly (R | ConversationRow)[] {
  const id = streamId(e.stream, "conversation")
  if (!id) return rows
  const at = rows.findIndex((row) => row.conversation_id === id)
  const old = rows[at] ?? null
  const row = foldConversationRow(old, e)
  if (!row || row === old) return rows
  return [row, ...rows.filter((_, i) => i !== at)]
}
