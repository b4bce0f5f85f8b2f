import { Lexer, type Token, type Tokens } from "marked"
import { Fragment, memo, type ReactNode, useMemo } from "react"
import { Code } from "./code"

/**
 * What a model writes, as elements: nothing of it ever becomes markup by itself. HTML stays the text that it is,
 * pictures become links (loading one would tell its server who reads), and links lead to the web and mail only.
 */
export default function Markdown({ text, still }: { text: string; still: boolean }) {
  const tokens = useMemo(() => new Lexer({ gfm: true }).lex(text), [text])
  return (
    <div className="flex flex-col gap-2 break-words">
      {tokens.map((token, i) => (
        <Block key={i} raw={token.raw} token={token} still={still && i === tokens.length - 1} />
      ))}
    </div>
  )
}

/** A block is drawn again only when its text changes: what was said is settled while more is being said. */
const Block = memo(
  function Block({ token, still }: { raw: string; token: Token; still: boolean }) {
    return block(token, still)
  },
  (a, b) => a.raw === b.raw && a.still === b.still,
)

function block(token: Token, still: boolean): ReactNode {
  switch (token.type) {
    case "space":
    case "def":
      return null
    case "heading":
      return (
        <p
          role="heading"
          aria-level={Math.min(6, (token as Tokens.Heading).depth + 2)}
          className={(token as Tokens.Heading).depth < 3 ? "pt-1 text-lg font-semibold" : "font-semibold"}
        >
          {inline(token.tokens)}
        </p>
      )
    case "paragraph":
      return <p>{inline(token.tokens)}</p>
    case "code":
      return <Code text={(token as Tokens.Code).text} language={(token as Tokens.Code).lang ?? ""} still={still} />
    case "blockquote":
      return <blockquote className="border-l-2 border-edge pl-3 text-muted">{blocks(token.tokens)}</blockquote>
    case "list":
      return listOf(token as Tokens.List)
    case "table":
      return tableOf(token as Tokens.Table)
    case "hr":
      return <hr />
    case "text":
      return "tokens" in token && token.tokens ? <span>{inline(token.tokens)}</span> : plain((token as Tokens.Text).text)
    default:
      return <p className="whitespace-pre-wrap">{token.raw}</p>
  }
}

const blocks = (tokens: Token[] | undefined): ReactNode => tokens?.map((token, i) => <Fragment key={i}>{block(token, false)}</Fragment>)

function listOf(list: Tokens.List): ReactNode {
  const items = list.items.map((item, i) => (
    <li key={i}>
      {item.task && <span aria-hidden="true">{item.checked ? "☑ " : "☐ "}</span>}
      {blocks(item.tokens)}
    </li>
  ))
  if (!list.ordered) return <ul className="list-disc pl-5">{items}</ul>
  return (
    <ol className="list-decimal pl-6" start={typeof list.start === "number" ? list.start : undefined}>
      {items}
    </ol>
  )
}

function tableOf(table: Tokens.Table): ReactNode {
  const cell = "border px-2 py-1 text-left align-top"
  return (
    <div className="overflow-x-auto" tabIndex={0}>
      <table className="border-collapse text-sm">
        <thead>
          <tr>
            {table.header.map((c, i) => (
              <th key={i} scope="col" className={`${cell} font-semibold`}>
                {inline(c.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, i) => (
            <tr key={i}>
              {row.map((c, j) => (
                <td key={j} className={cell}>
                  {inline(c.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const inline = (tokens: Token[] | undefined): ReactNode => tokens?.map((token, i) => <Fragment key={i}>{span(token)}</Fragment>)

function span(token: Token): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens)}</strong>
    case "em":
      return <em>{inline(token.tokens)}</em>
    case "del":
      return <del>{inline(token.tokens)}</del>
    case "codespan":
      return <code className="rounded-sm bg-sunken px-1 font-mono text-[0.92em]">{(token as Tokens.Codespan).text}</code>
    case "br":
      return <br />
    case "link":
      return linkTo((token as Tokens.Link).href, inline(token.tokens))
    case "image":
      return linkTo((token as Tokens.Image).href, (token as Tokens.Image).text || (token as Tokens.Image).href)
    case "escape":
      return (token as Tokens.Escape).text
    case "text":
      return "tokens" in token && token.tokens ? inline(token.tokens) : plain((token as Tokens.Text).text)
    default:
      return token.raw
  }
}

const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" }

/** The characters that are usually written as names; as text they are as harmless as any. */
const plain = (text: string) => text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name: string) => entities[name]!)

function linkTo(href: string, shown: ReactNode): ReactNode {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return shown
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" className="text-accent underline underline-offset-2">
      {shown}
    </a>
  )
}
