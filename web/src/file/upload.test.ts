import { expect, it } from "vitest"
import { batches, mostBytes, mostFiles, type Picked } from "./upload"

const picked = (size: number): Picked => ({ path: "a", file: { size } as File })

it("divides what is too much for one request, and loses nothing", () => {
  expect(batches([])).toEqual([])
  expect(batches(Array.from({ length: mostFiles + 1 }, () => picked(1))).map((b) => b.length)).toEqual([mostFiles, 1])
  expect(batches([picked(mostBytes - 1), picked(1), picked(1)]).map((b) => b.length)).toEqual([2, 1])
  expect(batches([picked(1), picked(mostBytes + 1), picked(1)]).map((b) => b.length)).toEqual([1, 1, 1])
})
