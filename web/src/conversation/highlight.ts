// The colours of code, loaded when the first block with a known language is complete: the core, and each grammar
// by itself. Colours are classes, since the page's policy forbids styles in markup.

import type { LanguageInput, ShikiPrimitive, ThemeRegistrationRaw } from "@shikijs/primitive"

export interface Piece {
  text: string
  look: string
}

const grammars: Record<string, () => Promise<unknown>> = {
  bash: () => import("@shikijs/langs/bash"),
  c: () => import("@shikijs/langs/c"),
  css: () => import("@shikijs/langs/css"),
  diff: () => import("@shikijs/langs/diff"),
  go: () => import("@shikijs/langs/go"),
  xml: () => import("@shikijs/langs/xml"),
  java: () => import("@shikijs/langs/java"),
  javascript: () => import("@shikijs/langs/javascript"),
  json: () => import("@shikijs/langs/json"),
  python: () => import("@shikijs/langs/python"),
  rust: () => import("@shikijs/langs/rust"),
  sql: () => import("@shikijs/langs/sql"),
  toml: () => import("@shikijs/langs/toml"),
  tsx: () => import("@shikijs/langs/tsx"),
  typescript: () => import("@shikijs/langs/typescript"),
  yaml: () => import("@shikijs/langs/yaml"),
}
const others: Record<string, string> = {
  sh: "bash",
  shell: "bash",
  console: "bash",
  zsh: "bash",
  h: "c",
  golang: "go",
  js: "javascript",
  jsx: "tsx",
  mjs: "javascript",
  py: "python",
  rs: "rust",
  ts: "typescript",
  yml: "yaml",
  patch: "diff",
  jsonc: "json",
  html: "xml",
  svg: "xml",
}

// Foregrounds are names of classes.
const classes: Record<string, string[]> = {
  comment: ["comment", "punctuation.definition.comment"],
  constant: ["constant", "entity.other.attribute-name", "support.constant", "variable.language"],
  keyword: ["keyword", "storage", "punctuation.definition.keyword", "entity.name.tag", "markup.heading"],
  string: ["string", "punctuation.definition.string", "markup.inserted"],
  removed: ["markup.deleted"],
}
const theme: ThemeRegistrationRaw = {
  name: "classes",
  type: "light",
  fg: "var(--plain)",
  bg: "var(--plain)",
  settings: Object.entries(classes).map(([name, scope]) => ({ scope, settings: { foreground: `var(--${name})` } })),
}

type Tokens = (text: string, lang: string) => { content: string; color?: string }[][]

let starting: Promise<{ primitive: ShikiPrimitive; tokens: Tokens }> | undefined

async function start() {
  const [{ codeToTokensBase, createShikiPrimitiveAsync }, { createJavaScriptRegexEngine }] = await Promise.all([
    import("@shikijs/primitive"),
    import("@shikijs/engine-javascript"),
  ])
  const engine = createJavaScriptRegexEngine({ forgiving: true })
  const primitive = await createShikiPrimitiveAsync({ themes: [theme], langs: [], engine })
  return { primitive, tokens: ((text, lang) => codeToTokensBase(primitive, text, { lang, theme: "classes" })) as Tokens }
}

/** The pieces of each line, or null for a language without a grammar here. */
export async function highlight(text: string, language: string): Promise<Piece[][] | null> {
  const name = others[language] ?? language
  const grammar = grammars[name]
  if (!grammar) return null
  const [{ primitive, tokens }, loaded] = await Promise.all([(starting ??= start()), grammar()])
  await primitive.loadLanguage(loaded as LanguageInput)
  return tokens(text, name).map((line) => line.map((token) => ({ text: token.content, look: lookOf(token.color) })))
}

/** "var(--keyword)" becomes "tok-keyword"; the colours are in code.css. */
function lookOf(colour: string | undefined): string {
  const name = /--([a-z]+)/.exec(colour ?? "")?.[1]
  return name && name !== "plain" ? `tok-${name}` : ""
}
