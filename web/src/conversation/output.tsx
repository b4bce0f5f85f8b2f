import { useMemo, useState } from "react"
import { useTranslation } from "react-i18next"
import { useFormat } from "../i18n/format"

/** Lines that are shown of each end of a long output. */
const head = 8
const tail = 8
/** Characters of one line that are shown before it is opened. */
const wide = 2000

/** Colours and movements of a terminal, which nobody reads here. */
// eslint-disable-next-line no-control-regex
const escapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g

type OutputProps = {
  text: string
  /** of all of it, when this is not all; null when it is */
  bytes: number | null
  name: string
}

/** What a tool said: its beginning and its end, all of it on demand. */
export function Output({ text, bytes, name }: OutputProps) {
  const { t } = useTranslation()
  const format = useFormat()
  const [open, setOpen] = useState(false)
  const lines = useMemo(() => text.replace(escapes, "").replace(/\n$/, "").split("\n"), [text])
  const hidden = lines.length - head - tail
  const long = hidden > 4 || lines.some((line) => line.length > wide)
  const pre = "overflow-x-auto px-3 py-1.5 font-mono text-xs leading-4 whitespace-pre"
  return (
    <div className="border-t bg-sunken">
      {open || !long ? (
        <pre className={`${pre} ${open ? "max-h-96 overflow-y-auto" : ""}`} tabIndex={0}>
          {lines.join("\n")}
        </pre>
      ) : (
        <>
          <pre className={pre} tabIndex={0}>
            {cut(lines.slice(0, hidden > 4 ? head : undefined))}
          </pre>
          {hidden > 4 && (
            <p className="border-y border-dashed px-3 py-0.5 text-xs text-muted">{t("conversation.middle", { count: hidden })}</p>
          )}
          {hidden > 4 && (
            <pre className={pre} tabIndex={0}>
              {cut(lines.slice(-tail))}
            </pre>
          )}
        </>
      )}
      <div className="flex flex-wrap items-center gap-3 px-3 pb-1.5 text-xs text-muted">
        {long && (
          <button type="button" className="rounded-sm underline underline-offset-2" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? t("conversation.less") : t("conversation.all_lines", { count: lines.length })}
          </button>
        )}
        {bytes !== null && <span>{t("conversation.truncated", { size: format.bytes(bytes) })}</span>}
        <Copy text={text} />
        {long && (
          <button type="button" className="rounded-sm underline underline-offset-2" onClick={() => download(text, name)}>
            {t("conversation.download")}
          </button>
        )}
      </div>
    </div>
  )
}

const cut = (lines: string[]) => lines.map((line) => (line.length > wide ? `${line.slice(0, wide)}…` : line)).join("\n")

export function Copy({ text }: { text: string }) {
  const { t } = useTranslation()
  const [copied, setCopied] = useState(false)
  const copy = () => void navigator.clipboard?.writeText(text).then(() => setCopied(true))
  return (
    <button type="button" className="rounded-sm underline underline-offset-2" onClick={copy}>
      {copied ? t("ui.copied") : t("ui.copy")}
    </button>
  )
}

function download(text: string, name: string) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }))
  const link = document.createElement("a")
  link.href = url
  link.download = name.replace(/[^\w.-]/g, "_")
  link.click()
  URL.revokeObjectURL(url)
}
