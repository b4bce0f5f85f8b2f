// What the compiler does not see: text for people stands in the catalogues only; both have the same keys and the same
// placeholders; every key is used; nothing needs what the page's policy forbids.
import { existsSync, readFileSync } from "node:fs"
import ts from "typescript"
import { filesIn, web } from "./files.mjs"

const src = `${web}src/`
const files = filesIn(src)
let failed = 0
const fail = (message) => {
  failed++
  console.error(message)
}

// Attributes that people see or hear.
const shown = new Set(["aria-label", "aria-description", "aria-roledescription", "aria-valuetext", "title", "placeholder", "alt", "label", "hint", "text", "action"])
// Two letters in a row, or one of Chinese, are words; "·" and "K" are not.
const words = /\p{L}{2}|\p{Script=Han}/u

function lintSource(name, code) {
  const file = ts.createSourceFile(name, code, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX)
  const at = (node) => `web/src/${name}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}`
  const literal = (node) => (node && ts.isJsxExpression(node) ? literal(node.expression) : node && ts.isStringLiteralLike(node) ? node.text : undefined)
  const visit = (node) => {
    if (ts.isJsxText(node) && words.test(node.text)) fail(`${at(node)}: ${JSON.stringify(node.text.trim())} stands in the code: put it into text.en.json and text.zh.json`)
    if (ts.isJsxExpression(node) && (ts.isJsxElement(node.parent) || ts.isJsxFragment(node.parent)) && words.test(literal(node) ?? "")) fail(`${at(node)}: a text stands in the code: put it into the catalogues`)
    if (ts.isJsxAttribute(node)) {
      const attribute = node.name.getText()
      if (shown.has(attribute) && words.test(literal(node.initializer) ?? "")) fail(`${at(node)}: the text of ${attribute} stands in the code: put it into the catalogues`)
      if (attribute === "dangerouslySetInnerHTML") fail(`${at(node)}: ${attribute}: the page's policy forbids it`)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
}

const flat = (value, prefix = "") =>
  typeof value === "string" ? [[prefix, value]] : Object.entries(value).flatMap(([key, inner]) => flat(inner, prefix ? `${prefix}.${key}` : key))
const withoutPlural = (key) => key.replace(/_(zero|one|two|few|many|other)$/, "")
const holes = (text) => [...text.matchAll(/\{\{(\w+)/g)].map((m) => m[1]).sort().join()

function catalogue(folder, language) {
  const path = `${src}${folder}/text.${language}.json`
  if (!existsSync(path)) {
    fail(`web/src/${folder}/text.${language}.json is missing`)
    return new Map()
  }
  const keys = new Map()
  for (const [key, text] of flat(JSON.parse(readFileSync(path, "utf8")))) {
    if (text.trim() === "") fail(`web/src/${folder}/text.${language}.json: ${key} is empty`)
    keys.set(withoutPlural(key), holes(text)) // the last form of a plural stands for all
  }
  return keys
}

const code = new Map(files.filter((f) => /\.tsx?$/.test(f) && !f.startsWith("gen/") && !/\.test\.tsx?$/.test(f)).map((f) => [f, readFileSync(src + f, "utf8")]))
for (const [name, text] of code) if (name.endsWith(".tsx")) lintSource(name, text)

// A key is used when the code has it, or the beginning of it in front of what is put in: `task.state.${x}`.
const all = [...code.values()].join("\n")
const used = (key) => {
  if (all.includes(`"${key}"`) || all.includes(`\`${key}\``) || all.includes(`'${key}'`)) return true
  const parts = key.split(/(?<=[._])/)
  return parts.some((_, i) => i > 0 && all.includes("`" + parts.slice(0, i).join("") + "${"))
}

for (const folder of new Set(files.filter((f) => /^[a-z0-9]+\/text\.[a-z]+\.json$/.test(f)).map((f) => f.split("/")[0]))) {
  const [en, zh] = [catalogue(folder, "en"), catalogue(folder, "zh")]
  for (const [a, b, missing] of [[en, zh, "zh"], [zh, en, "en"]]) {
    for (const [key, found] of a) {
      if (!b.has(key)) fail(`web/src/${folder}/text.${missing}.json: ${key} is missing`)
      else if (b.get(key) !== found && missing === "zh") fail(`web/src/${folder}/text.zh.json: ${key} has other placeholders than English: ${b.get(key)} instead of ${found}`)
    }
  }
  for (const key of en.keys()) if (!used(`${folder}.${key}`)) fail(`web/src/${folder}/text.en.json: nothing uses ${key}: delete it`)
}

if (/"resolved"/.test(readFileSync(`${web}package-lock.json`, "utf8"))) fail("web/package-lock.json records addresses of a registry: web/.npmrc forbids that")
for (const [name, version] of Object.entries({ ...JSON.parse(readFileSync(`${web}package.json`, "utf8")).dependencies, ...JSON.parse(readFileSync(`${web}package.json`, "utf8")).devDependencies })) {
  if (!/^\d/.test(version)) fail(`web/package.json: ${name} is ${version}: pin one version`)
}
process.exitCode = failed ? 1 : 0
