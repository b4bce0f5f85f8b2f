// The fold of a conversation: the rules of domain/conversation/evolve.go for the turns, and those of
// db/projection/conversation.go for the state of each message.

import type { LogEvent } from "../live/frame"
import { num, str, text, type Data, type Text } from "./data"
import { streamId } from "./run"

export type TurnState = "waiting" | "active" | "succeeded" | "failed" | "cancelled"

/** One message, and the run that answers it. */
export interface Turn {
  turn: string
  message: string
  run: string
  author: string
  text: Text
  postedAt: string
  state: TurnState
  /** null while it waits, and when it never started */
  number: number | null
  /** of the events that are folded in it; empty when it was read as a whole */
  positions: number[]
}

export interface Conversation {
  id: string
  opened: boolean
  agent: string
  title: Text
  /** in the order of their messages */
  turns: Turn[]
  /** the newest version that was folded, 0 for none */
  version: number
  /** of the events that belong to no turn */
  positions: number[]
}

export function newConversation(id: string): Conversation {
  return { id, opened: false, agent: "", title: null, turns: [], version: 0, positions: [] }
}

const rank = (state: TurnState): number => (state === "waiting" ? 0 : state === "active" ? 1 : 2)

export const activeTurn = (c: Conversation): Turn | undefined => c.turns.findLast((turn) => turn.state === "active")

export const waitingTurns = (c: Conversation): Turn[] => c.turns.filter((turn) => turn.state === "waiting")

/**
 * Folds one event of the conversation's stream. Repeats change nothing. A turn whose message this page does
 * not have (it is older than what was read) is passed over.
 */
export function foldConversation(c: Conversation, e: LogEvent): Conversation {
  if (e.version <= c.version || streamId(e.stream, "conversation") !== c.id) return c
  const next = { ...c, version: e.version }
  const d = e.data
  switch (e.kind) {
    case "conversation.opened":
      return c.opened ? next : { ...next, opened: true, agent: str(d.agent), title: text(d.title), positions: [...c.positions, e.position] }
    case "conversation.message_posted":
      return { ...next, turns: withPosted(c.turns, e, d) }
    case "conversation.turn_started":
      return { ...next, turns: withTurn(c.turns, str(d.turn), e, { state: "active", number: num(d.number) }) }
    case "conversation.turn_ended":
      return { ...next, turns: withTurn(c.turns, str(d.turn), e, { state: str(d.outcome) as TurnState }) }
    default:
      return c.positions.includes(e.position) ? next : { ...next, positions: [...c.positions, e.position] }
  }
}

function withPosted(turns: Turn[], e: LogEvent, d: Data): Turn[] {
  const turn = str(d.turn)
  if (turns.some((t) => t.turn === turn)) return withTurn(turns, turn, e, {})
  const posted: Turn = {
    turn,
    message: str(d.message),
    run: str(d.run),
    author: str(d.author),
    text: text(d.text),
    postedAt: e.at,
    state: "waiting",
    number: null,
    positions: [e.position],
  }
  return [...turns, posted]
}

function withTurn(turns: Turn[], id: string, e: LogEvent, changed: Partial<Turn>): Turn[] {
  const at = turns.findLastIndex((t) => t.turn === id)
  const old = turns[at]
  if (!old || old.positions.includes(e.position)) return turns
  const forward = changed.state && rank(changed.state) > rank(old.state) ? changed : {}
  return turns.with(at, { ...old, ...forward, positions: [...old.positions, e.position] })
}

/**
 * Folds what came while a page of turns was being read, once the page is taken in: an event may have been of a
 * turn that only the page has, and the page may be of a moment before the event. What is folded already stays.
 */
export function refold(c: Conversation, events: readonly LogEvent[]): Conversation {
  const { version } = c
  const folded = events.reduce((next, e) => foldConversation({ ...next, version: e.version - 1 }, e), c)
  return { ...folded, version }
}

/** Takes in turns that were read as a whole. A turn's state only goes forward: it is never taken back. */
export function withPage(c: Conversation, page: Turn[]): Conversation {
  const known = new Map(c.turns.map((turn) => [turn.turn, turn]))
  for (const turn of page) {
    const old = known.get(turn.turn)
    known.set(turn.turn, old ? further(old, turn) : turn)
  }
  const turns = [...known.values()]
  const order = new Map(page.map((turn, i) => [turn.turn, i]))
  const place = (turn: Turn) => order.get(turn.turn)
  return { ...c, turns: merged(turns, place, c.turns) }
}

function further(old: Turn, read: Turn): Turn {
  const newer = rank(read.state) > rank(old.state) ? read : old
  return { ...old, state: newer.state, number: newer.number ?? old.number, text: read.text }
}

/** Turns of the page stand in its order, before those that were posted after it and after those that are older. */
function merged(turns: Turn[], place: (turn: Turn) => number | undefined, known: Turn[]): Turn[] {
  const firstShared = known.findIndex((turn) => place(turn) !== undefined)
  const paged = turns.filter((turn) => place(turn) !== undefined).sort((a, b) => place(a)! - place(b)!)
  const rest = known.filter((turn) => place(turn) === undefined)
  const olderThanPage = firstShared > 0 ? known.slice(0, firstShared).filter((turn) => rest.includes(turn)) : []
  return [...olderThanPage, ...paged, ...rest.filter((turn) => !olderThanPage.includes(turn))]
}
