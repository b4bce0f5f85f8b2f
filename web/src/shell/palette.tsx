import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { Icon } from "../ui/icon"
import { type Choice, useChoices } from "./palette_find"

/** Jumping by typing: a box, and under it what fits. Arrows choose, Enter goes, Escape closes. */
export function Palette({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation()
  const dialog = useRef<HTMLDialogElement>(null)
  const list = useId()
  const [asked, setAsked] = useState("")
  const [at, setAt] = useState(0)
  const choices = useChoices(asked)
  const chosen = Math.min(at, choices.length - 1)
  useEffect(() => dialog.current?.showModal(), [])
  const go = (choice: Choice | undefined) => {
    if (!choice) return
    dialog.current?.close()
    choice.go()
  }
  const press = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing) return
    if (e.key === "Enter") go(choices[chosen])
    else if (e.key === "ArrowDown") setAt(Math.min(chosen + 1, choices.length - 1))
    else if (e.key === "ArrowUp") setAt(Math.max(chosen - 1, 0))
    else return
    e.preventDefault()
  }
  return (
    <dialog
      ref={dialog}
      aria-label={t("shell.palette.open")}
      onClose={onClose}
      onMouseDown={(e) => e.target === e.currentTarget && e.currentTarget.close()}
      className="mt-[12dvh] w-[calc(100vw-2rem)] max-w-xl overflow-hidden rounded-lg bg-surface p-0 shadow-raised"
    >
      <input
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={choices[chosen] ? `${list}-${chosen}` : undefined}
        aria-label={t("shell.palette.ask")}
        placeholder={t("shell.palette.ask")}
        value={asked}
        onChange={(e) => {
          setAsked(e.target.value)
          setAt(0)
        }}
        onKeyDown={press}
        className="h-12 w-full border-b bg-transparent px-4 text-lg outline-none"
      />
      <ul id={list} role="listbox" aria-label={t("shell.palette.open")} className="max-h-[50dvh] overflow-y-auto p-1">
        {choices.map((choice, i) => (
          <li
            key={choice.id}
            id={`${list}-${i}`}
            role="option"
            aria-selected={i === chosen}
            ref={i === chosen ? intoView : undefined}
            onMouseMove={() => setAt(i)}
            onClick={() => go(choice)}
            className={`flex min-h-9 cursor-pointer items-center gap-3 rounded-md px-3 text-sm ${i === chosen ? "bg-hover" : ""}`}
          >
            <Icon name={choice.icon} className="text-muted" />
            <span className="min-w-0 truncate">{choice.text}</span>
            <span className="ml-auto max-w-[40%] shrink-0 truncate text-xs text-muted">{choice.about}</span>
          </li>
        ))}
      </ul>
      <p role="status" className={choices.length === 0 ? "px-4 pb-4 text-sm text-muted" : "sr-only"}>
        {choices.length === 0 ? t("shell.palette.nothing") : t("shell.palette.found", { count: choices.length })}
      </p>
    </dialog>
  )
}

/** The chosen one is in sight, however long the list is. */
const intoView = (at: HTMLElement | null) => at?.scrollIntoView({ block: "nearest" })
