import { expect, it } from "vitest"
import { readDiff } from "./diff"

it("numbers the lines of both sides, and takes no content for a header", () => {
  const diff = "--- a/x\n+++ b/x\n@@ -3,3 +3,3 @@ f\n same\n--- gone\n+++ come\n last\n\\ No newline at end of file\n@@ -20 +20,0 @@\n-x\n"
  expect(readDiff(diff).map((l) => [l.kind, l.old, l.new, l.text])).toEqual([
    ["hunk", null, null, "@@ -3,3 +3,3 @@ f"],
    ["same", 3, 3, "same"],
    ["removed", 4, null, "-- gone"],
    ["added", null, 4, "++ come"],
    ["same", 5, 5, "last"],
    ["note", null, null, "\\ No newline at end of file"],
    ["hunk", null, null, "@@ -20 +20,0 @@"],
    ["removed", 20, null, "x"],
  ])
})
