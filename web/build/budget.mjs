// Fails when the first load is larger than 170 kB, or what a route adds to it than 30 kB: gzip, 1 kB = 1000 bytes.
// The first load is everything that is needed before a page shows: index.html, the entry with what it imports, styles,
// and the larger of the catalogues of texts. A part that more than one route needs counts for each of them.
// Parts that a route loads only where they are used (dynamic imports inside it) have the route's limit each.
import { readFileSync } from "node:fs"
import { gzipSync } from "node:zlib"
import { dist, web } from "./files.mjs"

const firstLimit = 170_000
const routeLimit = 30_000

const manifest = JSON.parse(readFileSync(`${web}.build/manifest.json`, "utf8"))
const sizes = new Map()
const size = (file) => {
  if (!sizes.has(file)) sizes.set(file, gzipSync(readFileSync(dist + file), { level: 9 }).length)
  return sizes.get(file)
}
/** The files that a part needs at once. */
const needs = (key, files = new Set(), seen = new Set()) => {
  if (seen.has(key)) return files
  seen.add(key)
  const part = manifest[key]
  files.add(part.file)
  for (const style of part.css ?? []) files.add(style)
  for (const other of part.imports ?? []) needs(other, files, seen)
  return files
}
const sum = (files) => [...files].reduce((all, file) => all + size(file), 0)

const first = new Set(["index.html", "theme.js", ...needs("index.html")])
const without = (key) => new Set([...needs(key)].filter((file) => !first.has(file)))
const texts = Object.keys(manifest).filter((key) => /^src\/i18n\/[a-z]{2}\.ts$/.test(key))
if (texts.length < 2) throw new Error("the manifest has no catalogues of texts")

const measured = [["first load", sum(first) + Math.max(...texts.map((key) => sum(without(key)))), firstLimit]]
for (const key of Object.keys(manifest)) {
  if (manifest[key].isDynamicEntry && !texts.includes(key)) measured.push([key, sum(without(key)), routeLimit])
}
for (const [name, bytes, limit] of measured) {
  const over = bytes > limit
  if (over || process.argv.includes("--all") || name === "first load") console.log(`${over ? "OVER " : ""}${name}: ${(bytes / 1000).toFixed(1)} kB of ${limit / 1000} kB`)
  if (over) process.exitCode = 1
}
