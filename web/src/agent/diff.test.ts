import { describe, expect, it } from "vitest"
import { lineDiff } from "./diff"

const marks = (was: string, is: string) => lineDiff(was, is).map((l) => l.mark + l.text)

describe("lineDiff", () => {
  it("says what went and what came", () => {
    expect(marks("a\nb\nc", "a\nx\nc")).toEqual([" a", "-b", "+x", " c"])
    expect(marks("", "a")).toEqual(["+a"])
    expect(marks("a", "")).toEqual(["-a"])
    expect(marks("a\nb", "a\nb")).toEqual([" a", " b"])
    expect(marks("a\nb\nc\nd", "b\nd\ne")).toEqual(["-a", " b", "-c", " d", "+e"])
  })

  it("gives both texts back, whatever they are", () => {
    let seed = 7
    const chance = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
    for (let round = 0; round < 300; round++) {
      const text = () => Array.from({ length: 1 + chance(9) }, () => "abc"[chance(3)]).join("\n")
      const [was, is] = [text(), text()]
      const lines = lineDiff(was, is)
      expect(lines.filter((l) => l.mark !== "+").map((l) => l.text).join("\n")).toBe(was)
      expect(lines.filter((l) => l.mark !== "-").map((l) => l.text).join("\n")).toBe(is)
    }
  })
})
