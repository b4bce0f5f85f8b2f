import { describe, expect, test } from "vitest"
import type { Delta } from "../live/frame"
import { hear, settle, type Words } from "./words"

const delta = (step: number, epoch: number, attempt: number, from: number, seq: number, text: string): Delta => ({
  type: "delta",
  topic: "t",
  run: "r",
  step,
  epoch,
  attempt,
  from,
  seq,
  text,
})

const said = (facts: number, ...deltas: Delta[]): Words | null => deltas.reduce<Words | null>((w, d) => hear(w, d, facts), null)

describe("words before facts", () => {
  test("append in order", () => {
    expect(said(0, delta(1, 1, 1, 0, 0, "a"), delta(1, 1, 1, 1, 1, "b"), delta(1, 1, 1, 2, 4, "c"), delta(1, 1, 1, 5, 5, "d"))?.text).toBe(
      "abcd",
    )
  })
  test("ignore a step whose fact is there", () => {
    expect(said(1, delta(1, 1, 1, 0, 0, "a"))).toBeNull()
  })
  test("ignore what was heard", () => {
    expect(said(0, delta(1, 1, 1, 0, 3, "abcd"), delta(1, 1, 1, 2, 2, "c"), delta(1, 1, 1, 4, 4, "e"))?.text).toBe("abcde")
  })
  test("take the whole from the beginning, for who comes in the middle", () => {
    expect(said(0, delta(1, 1, 1, 0, 0, "a"), delta(1, 1, 1, 0, 7, "abcdefgh"))?.text).toBe("abcdefgh")
  })
  test("stop where some were lost, until the whole or the fact comes", () => {
    const lost = said(0, delta(1, 1, 1, 0, 0, "a"), delta(1, 1, 1, 2, 2, "c"), delta(1, 1, 1, 3, 3, "d"))
    expect(lost).toMatchObject({ text: "a", broken: true })
    expect(hear(lost, delta(1, 1, 1, 0, 4, "abcde"), 0)).toMatchObject({ text: "abcde", broken: false })
    expect(settle(lost, 1)).toBeNull()
  })
  test("show nothing of an attempt whose beginning was lost", () => {
    expect(said(0, delta(1, 1, 1, 3, 3, "d"))).toMatchObject({ text: "", broken: true })
  })
  test("a later step, epoch or attempt replaces, an earlier one is ignored", () => {
    const order = [delta(1, 1, 1, 0, 9, "a"), delta(1, 1, 2, 0, 0, "b"), delta(1, 2, 1, 0, 0, "c"), delta(2, 1, 1, 0, 0, "d")]
    for (let i = 0; i < order.length; i++) {
      expect(said(0, ...order.slice(0, i + 1))?.text).toBe(order[i]!.text)
      for (const earlier of order.slice(0, i)) expect(said(0, order[i]!, earlier)?.text).toBe(order[i]!.text)
    }
  })
  test("the fact of an earlier step leaves the words of a later one", () => {
    const words = said(0, delta(2, 1, 1, 0, 0, "a"))
    expect(settle(words, 1)).toBe(words)
    expect(settle(words, 2)).toBeNull()
  })
})
