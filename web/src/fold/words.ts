// "Words before facts" of docs/reference/live.md: what a model is saying, before its answer is a fact.

import type { Delta } from "../live/frame"

export interface Words {
  step: number
  epoch: number
  attempt: number
  /** of the last piece that was taken */
  seq: number
  text: string
  /** pieces were lost: what stands here is a beginning, and stays one until the fact comes */
  broken: boolean
}

/** Takes a piece. `facts` is how many steps of the run are facts already. Answers the same object when nothing changes. */
export function hear(words: Words | null, delta: Delta, facts: number): Words | null {
  if (delta.step <= facts) return words
  const order = words ? compare(delta, words) : 1
  if (order < 0) return words
  const now = order === 0 && words ? words : begin(delta)
  if (order === 0 && delta.seq <= now.seq) return words
  const { seq } = delta
  if (delta.from === 0) return { ...now, seq, text: delta.text, broken: false }
  if (now.broken) return words
  if (delta.from === now.seq + 1) return { ...now, seq, text: now.text + delta.text }
  return { ...now, broken: true }
}

/** Drops the words that a fact replaces. */
export function settle(words: Words | null, facts: number): Words | null {
  return words && words.step <= facts ? null : words
}

function begin({ step, epoch, attempt }: Delta): Words {
  return { step, epoch, attempt, seq: -1, text: "", broken: false }
}

function compare(a: Delta, b: Words): number {
  return a.step - b.step || a.epoch - b.epoch || a.attempt - b.attempt
}
