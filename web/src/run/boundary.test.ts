import { expect, it } from "vitest"
import { readReport } from "./boundary"

it("puts what is missing first, and keeps unknown apart from no", () => {
  const report = readReport({
    backend: "native",
    grade: null,
    controls: [
      { name: "a", requested: true, installed: true, observed: null, reason: "cannot be read" },
      { name: "b", requested: true, installed: true, observed: false, reason: "seen" },
      { name: "c", requested: false, installed: false, observed: null },
    ],
    missing: ["b"],
    phases: [{ name: "clone", microseconds: 1500 }],
    network: { requested: "none", observed: "none" },
  })!
  expect(report.controls.map((c) => [c.name, c.missing, c.observed])).toEqual([
    ["b", true, false],
    ["a", false, null],
    ["c", false, null],
    ["network", false, "none"],
  ])
  expect(report).toMatchObject({ grade: null, missing: 1, phases: [{ name: "clone", ms: 1.5 }], facts: [["backend", "native"]], refusals: [] })
  expect(readReport(null)).toBeNull()
})
