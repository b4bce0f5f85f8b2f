import { type KeyboardEvent, useId, useState } from "react"
import { useTranslation } from "react-i18next"
import { newKey } from "../api/client"
import { Button } from "../ui/button"

const place = (id: string) => `cairn.draft.${id}`

/** Where one writes. Enter sends, Shift-Enter begins a line; what is not sent yet stays until the tab is closed. */
export function Composer({ id, send }: { id: string; send: (text: string, key: string) => void }) {
  const { t } = useTranslation()
  const hint = useId()
  const [text, setText] = useState(() => sessionStorage.getItem(place(id)) ?? "")
  const write = (next: string) => {
    setText(next)
    if (next) sessionStorage.setItem(place(id), next)
    else sessionStorage.removeItem(place(id))
  }
  const submit = () => {
    if (text.trim() === "") return
    send(text, newKey())
    write("")
  }
  const key = (e: KeyboardEvent) => {
    // Enter that ends the choice of a character is no wish to send.
    if (e.key !== "Enter" || e.shiftKey || e.nativeEvent.isComposing || e.keyCode === 229) return
    e.preventDefault()
    submit()
  }
  return (
    <form
      className="flex items-end gap-2 border-t bg-surface px-4 py-3 sm:px-6"
      onSubmit={(e) => {
        e.preventDefault()
        submit()
      }}
    >
      <textarea
        value={text}
        onChange={(e) => write(e.target.value)}
        onKeyDown={key}
        rows={1}
        maxLength={1048576}
        aria-label={t("conversation.write")}
        aria-describedby={hint}
        placeholder={t("conversation.write")}
        className="field-sizing-content max-h-48 min-h-8 min-w-0 flex-1 resize-none rounded-md border border-edge bg-surface px-2.5 py-1"
      />
      <span id={hint} className="sr-only">
        {t("conversation.write_hint")}
      </span>
      <Button kind="primary" type="submit" disabled={text.trim() === ""}>
        {t("conversation.send")}
      </Button>
    </form>
  )
}
