import "./code.css"
import { useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import type { Piece } from "./highlight"
import { Copy } from "./output"

/** Longer code (characters) stays without colours: colouring it would hold up the page. */
const most = 40_000

/** A block of code. It gets its colours once, when it is complete, and never changes its size by that. */
export function Code({ text, language, still }: { text: string; language: string; still: boolean }) {
  const { t } = useTranslation()
  const name = language.trim().split(/\s/)[0]!.toLowerCase()
  const lines = useColours(text, name, still)
  return (
    <figure className="overflow-hidden rounded-md border bg-sunken">
      <figcaption className="flex justify-between border-b px-3 py-0.5 text-xs text-muted">
        <span className="font-mono">{name || t("conversation.code")}</span>
        <Copy text={text} />
      </figcaption>
      <pre tabIndex={0} className="overflow-x-auto px-3 py-2 font-mono text-xs leading-4 whitespace-pre">
        <code>
          {lines
            ? lines.map((line, i) => (
                <span key={i}>
                  {line.map((piece, j) => (
                    <span key={j} className={piece.look}>
                      {piece.text}
                    </span>
                  ))}
                  {i < lines.length - 1 && "\n"}
                </span>
              ))
            : text}
        </code>
      </pre>
    </figure>
  )
}

function useColours(text: string, language: string, still: boolean): Piece[][] | null {
  const [found, setFound] = useState<{ of: string; lines: Piece[][] } | null>(null)
  useEffect(() => {
    if (still || !language || text.length > most) return
    let wanted = true
    void import("./highlight")
      .then(({ highlight }) => highlight(text, language))
      .then((lines) => wanted && lines && setFound({ of: text, lines }))
      .catch(() => undefined) // Without its colours the code is still there.
    return () => void (wanted = false)
  }, [text, language, still])
  return found?.of === text ? found.lines : null
}
