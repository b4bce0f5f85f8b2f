import { expect, it } from "vitest"
import type { LogEvent } from "../live/frame"
import type { Watcher } from "../live/topic"
import { RunLog } from "./log"

const event = (position: number, stream = "run/1"): LogEvent => ({ position, stream, kind: position === 1 ? "run.queued" : "run.noted", version: position, schema: 1, at: "2026-01-01T00:00:00Z", actor: "system", data: {} })

it("has each event once and in order, whether it was read or heard", async () => {
  let watcher!: Watcher
  let answer!: () => void
  const reads: number[] = []
  const log = new RunLog("1", "t", { watch: (_id, _from, w) => ((watcher = w), () => undefined) }, (after) => {
    reads.push(after)
    const events = [1, 2, 3].filter((p) => p > after).slice(0, 2).map((p) => event(p))
    const page = { events, next: 0, more: after === 0 }
    return new Promise((resolve) => (answer = () => resolve(page)))
  })
  const changed = () => new Promise<void>((resolve) => { const stop = log.subscribe(() => (stop2(), resolve())); const stop2 = () => queueMicrotask(stop) })
  const keep = log.subscribe(() => undefined)
  watcher.began!({ logId: "l", incarnation: 1, position: 3 })
  watcher.events([event(3), event(4), event(5, "run/2")])
  answer()
  await changed()
  expect(log.get().phase).toBe("loading")
  answer()
  await changed()
  expect(log.get()).toMatchObject({ phase: "ready", run: { version: 4 } })
  expect(log.get().events.map((e) => e.position)).toEqual([1, 2, 3, 4])
  watcher.events([event(4), event(6)])
  await changed()
  expect(log.get().events.map((e) => e.position)).toEqual([1, 2, 3, 4, 6])
  expect(reads).toEqual([0, 2])
  keep()
})
