import { renderToStaticMarkup } from "react-dom/server"
import { beforeAll, expect, test } from "vitest"
import i18next from "i18next"
import { initReactI18next } from "react-i18next"
import Markdown from "./markdown"

beforeAll(() => i18next.use(initReactI18next).init({ lng: "en", resources: {} }))

const html = (text: string) => renderToStaticMarkup(<Markdown text={text} still={false} />)

test("what a model writes never becomes markup by itself", () => {
  const written = [
    "<script>alert(1)</script>",
    "a <img src=x onerror=alert(1)> b",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,hi)",
    "![secret](https://elsewhere.invalid/?q=1)",
    "<style>*{}</style>",
    "| a |\n| - |\n| <b>x</b> |",
    "[x]: javascript:alert(1)\n[x]",
    '<https://elsewhere.invalid/"onmouseover=alert(1)>',
    "`<i>`",
    "```html\n<iframe>\n```",
    "- <svg onload=alert(1)>",
  ]
  for (const text of written) {
    const made = html(text)
    expect(made, text).not.toMatch(/<(script|img|style|iframe|svg|b|i)\b/)
    expect(made, text).not.toMatch(/<[^>]* (href="(?!https?:|mailto:)|on\w+=|src=)/i)
  }
})

test("links lead out without telling from where; pictures are links", () => {
  expect(html("[x](https://example.org/a?b=1&c=2)")).toContain(
    '<a href="https://example.org/a?b=1&amp;c=2" target="_blank" rel="noopener noreferrer nofollow"',
  )
  expect(html("![a picture](https://example.org/p.png)")).toMatch(/<a href="https:\/\/example.org\/p.png"[^>]*>a picture<\/a>/)
})

test("characters by their names, which stay text", () => {
  expect(html("a &amp; b & c &lt;img src=x&gt;")).toContain("a &amp; b &amp; c &lt;img src=x&gt;")
})

test("the usual forms", () => {
  const made = html(
    "# Title\n\nSome **bold**, *soft*, ~~gone~~ and `code`.\n\n1. one\n2. two\n   - inner\n\n> said\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```go\nx := 1\n```",
  )
  for (const part of [
    'role="heading"',
    "<strong>bold</strong>",
    "<em>soft</em>",
    "<del>gone</del>",
    "<code",
    "<ol",
    "<ul",
    "<blockquote",
    "<td",
    "x := 1",
  ])
    expect(made).toContain(part)
})
