import { expect, it } from "vitest"
import type { StoredFile } from "./query"
import { inFolder } from "./tree"

const file = (path: string, size = 1) => ({ path, size, file_id: path }) as StoredFile

it("shows what lies directly in a folder", () => {
  const all = [file("b.txt"), file("src/a/x.ts", 3), file("src/main.ts", 4), file("srcs/no.ts"), file("a10.txt"), file("a9.txt")]
  expect(inFolder(all, "", "en").folders).toEqual([
    { name: "src", files: 2, bytes: 7 },
    { name: "srcs", files: 1, bytes: 1 },
  ])
  expect(inFolder(all, "", "en").files.map((f) => f.path)).toEqual(["a9.txt", "a10.txt", "b.txt"])
  expect(inFolder(all, "src", "en")).toEqual({ folders: [{ name: "a", files: 1, bytes: 3 }], files: [file("src/main.ts", 4)] })
})
