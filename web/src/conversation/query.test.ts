import { expect, it } from "vitest"
import { titleOf } from "./query"

it("makes a title of a message", () => {
  expect(titleOf("\n  Fix the build \nplease")).toBe("Fix the build")
  expect(titleOf("x".repeat(81))).toBe(`${"x".repeat(79)}…`)
  expect(titleOf("石".repeat(80))).toBe("石".repeat(80))
  expect([...titleOf("🪨".repeat(100))].length).toBe(80)
})
