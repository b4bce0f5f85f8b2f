import { expect, test } from "vitest"
import { highlight } from "./highlight"

test("code comes in pieces that say what they are, and nothing of it is lost", async () => {
  const code = 'package main\n\n// why\nfunc main() { println("<b>", 1) }\n'
  const lines = await highlight(code, "golang")
  expect(lines!.map((line) => line.map((piece) => piece.text).join("")).join("\n")).toBe(code)
  const looks = Object.fromEntries(lines!.flat().map((piece) => [piece.text.trim(), piece.look]))
  expect(looks).toMatchObject({ package: "tok-keyword", "// why": "tok-comment", "1": "tok-constant" })
})

test("a language without a grammar stays plain", async () => {
  expect(await highlight("x", "klingon")).toBeNull()
})
