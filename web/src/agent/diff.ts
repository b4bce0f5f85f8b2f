export type Line = { mark: " " | "-" | "+"; text: string }

/**
 * The lines of two texts, with those that went and those that came: a longest common subsequence, by the table of all
 * lengths, after what is the same at both ends is put aside. Texts have at most 64 KiB; where the table would be too
 * large, the middle counts as replaced.
 */
export function lineDiff(was: string, is: string): Line[] {
  const [a, b] = [was === "" ? [] : was.split("\n"), is === "" ? [] : is.split("\n")]
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const same = (text: string): Line => ({ mark: " ", text })
  return [...a.slice(0, head).map(same), ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...a.slice(a.length - tail).map(same)]
}

const mostCells = 4_000_000

function middle(a: string[], b: string[]): Line[] {
  const [n, m] = [a.length, b.length]
  const width = m + 1
  if ((n + 1) * width > mostCells) return [...a.map((text): Line => ({ mark: "-", text })), ...b.map((text): Line => ({ mark: "+", text }))]
  const longest = new Uint32Array((n + 1) * width) // of what is left from here on
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1]! + 1 : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!)
    }
  }
  const lines: Line[] = []
  let [i, j] = [0, 0]
  while (i < n || j < m) {
    if (i < n && j < m && a[i] === b[j]) {
      lines.push({ mark: " ", text: a[i]! })
      i++
      j++
    } else if (i < n && (j === m || longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)) lines.push({ mark: "-", text: a[i++]! })
    else lines.push({ mark: "+", text: b[j++]! })
  }
  return lines
}
