// The colours of code, loaded when the first block with a known language is complete: the core, and each grammar
// by itself. Colours are classes, since the page's policy forbids styles in markup.

import type { HighlighterCore, LanguageInput } from "shiki/core"

export interface Piece {
  text: string
  look: string
}

const grammars: Record<string, () => Promise<unknown>> = {
  bash: () => import("shiki/langs/bash.mjs"),
  c: () => import("shiki/langs/c.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
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
}

let starting: Promise<HighlighterCore> | undefined

async function start(): Promise<HighlighterCore> {
  const [{ createHighlighterCore, createCssVariablesTheme }, { createJavaScriptRegexEngine }] = await Promise.all([
    import("shiki/core"),
    import("shiki/engine/javascript"),
  ])
  const theme = createCssVariablesTheme({ name: "variables", variablePrefix: "--", variableDefaults: {} })
  return createHighlighterCore({ themes: [theme], langs: [], engine: createJavaScriptRegexEngine({ forgiving: true }) })
}

/** The pieces of each line, or null for a language without a grammar here. */
export async function highlight(text: string, language: string): Promise<Piece[][] | null> {
  const name = others[language] ?? language
  const grammar = grammars[name]
  if (!grammar) return null
  const [core, loaded] = await Promise.all([(starting ??= start()), grammar()])
  await core.loadLanguage(loaded as LanguageInput)
  const { tokens } = core.codeToTokens(text, { lang: name, theme: "variables" })
  return tokens.map((line) => line.map((token) => ({ text: token.content, look: lookOf(token.color) })))
}

/** "var(--token-keyword)" becomes "tok-keyword"; the colours are in code.css. */
function lookOf(colour: string | undefined): string {
  const name = /--token-([a-z-]+)/.exec(colour ?? "")?.[1]
  return name ? `tok-${name}` : ""
}
