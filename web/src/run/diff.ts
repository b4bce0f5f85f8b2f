// A unified diff as lines with their numbers on both sides.

export interface DiffLine {
  kind: "hunk" | "same" | "added" | "removed" | "note"
  old: number | null
  new: number | null
  text: string
}

const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/

/** The file's own header lines are left out: the page says them. */
export function readDiff(diff: string): DiffLine[] {
  const lines: DiffLine[] = []
  let [left, right] = [0, 0]
  let [lefts, rights] = [0, 0]
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    if (lefts > 0 || rights > 0) {
      const text = line.slice(1)
      if (line.startsWith("+")) lines.push({ kind: "added", old: null, new: right++, text }), rights--
      else if (line.startsWith("-")) lines.push({ kind: "removed", old: left++, new: null, text }), lefts--
      else if (line.startsWith("\\")) lines.push({ kind: "note", old: null, new: null, text: line })
      else lines.push({ kind: "same", old: left++, new: right++, text }), lefts--, rights--
      continue
    }
    const at = hunk.exec(line)
    if (at) {
      ;[left, right] = [Number(at[1]), Number(at[3])]
      ;[lefts, rights] = [Number(at[2] ?? 1), Number(at[4] ?? 1)]
      lines.push({ kind: "hunk", old: null, new: null, text: line })
    } else if (line.startsWith("\\")) lines.push({ kind: "note", old: null, new: null, text: line })
    else if (lines.length > 0 && line !== "") lines.push({ kind: "note", old: null, new: null, text: line })
  }
  return lines
}
