import { useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { tell } from "./toast"

/** Copies a text; the button says that it did. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const { t } = useTranslation()
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const back = setTimeout(() => setCopied(false), 2000)
    return () => clearTimeout(back)
  }, [copied])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text) // over plain HTTP from elsewhere there is none
      setCopied(true)
    } catch {
      tell(t("ui.not_copied"))
    }
  }
  return (
    <button type="button" onClick={() => void copy()} className="rounded-sm text-xs underline underline-offset-2">
      {copied ? t("ui.copied") : (label ?? t("ui.copy"))}
    </button>
  )
}
