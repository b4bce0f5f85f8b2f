import { cloneElement, createContext, type ButtonHTMLAttributes, type KeyboardEvent, type ReactElement, type ReactNode, useContext, useId, useRef, useState } from "react"
import { flushSync } from "react-dom"
import { Icon } from "./icon"

const Close = createContext<() => void>(() => {})

type Trigger = ReactElement<ButtonHTMLAttributes<HTMLButtonElement>>

/**
 * A menu under a button: the browser's own popover, so it lies above everything, and closes with Escape and with a click
 * elsewhere. Arrows, Home, End and first letters move in it. (A library for it costs a fifth of the first load.)
 */
export function Menu({ trigger, children, align = "start" }: { trigger: Trigger; children: ReactNode; align?: "start" | "end" }) {
  const id = useId()
  const menu = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState(false)
  const shown = () => {
    const [at, box] = [document.getElementById(`${id}-button`), menu.current]
    if (!at || !box) return
    place(box, at.getBoundingClientRect(), align)
    items(box)[0]?.focus()
  }
  const toggles = (opens: boolean) => {
    flushSync(() => setOpen(opens))
    if (opens) requestAnimationFrame(shown) // before it is painted
  }
  const close = () => menu.current?.hidePopover() // gives the focus back
  return (
    <>
      {cloneElement(trigger, {
        id: `${id}-button`,
        "aria-haspopup": "menu",
        "aria-expanded": open,
        "aria-controls": open ? id : undefined,
        popoverTarget: id,
        onKeyDown: (e: KeyboardEvent) => {
          if (e.key !== "ArrowDown" || open) return
          e.preventDefault()
          menu.current?.showPopover()
        },
      })}
      <div
        ref={menu}
        id={id}
        role="menu"
        aria-labelledby={`${id}-button`}
        popover="auto"
        onBeforeToggle={(e) => toggles(e.newState === "open")}
        onKeyDown={move}
        className="fixed inset-auto m-0 max-h-[70dvh] min-w-48 max-w-[calc(100vw-1rem)] overflow-y-auto rounded-lg bg-surface p-1 text-text shadow-raised"
      >
        {open && <Close value={close}>{children}</Close>}
      </div>
    </>
  )
}

/** Under the button, or above it where there is more room. */
function place(box: HTMLElement, at: DOMRect, align: "start" | "end") {
  const { offsetWidth: width, offsetHeight: height } = box
  const left = align === "start" ? at.left : at.right - width
  const below = at.bottom + 4
  box.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`
  box.style.top = `${below + height > innerHeight && at.top > height ? at.top - height - 4 : below}px`
}

const items = (box: HTMLElement) => [...box.querySelectorAll<HTMLElement>("[role^=menuitem]:not([aria-disabled=true])")]

function move(e: KeyboardEvent<HTMLElement>) {
  const all = items(e.currentTarget)
  const at = all.indexOf(document.activeElement as HTMLElement)
  const next = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[e.key]
  if (e.key === "Tab") e.currentTarget.hidePopover()
  else if (next !== undefined) {
    e.preventDefault()
    all[next % all.length]?.focus()
  } else if (e.key.length === 1 && e.key !== " ") {
    const from = [...all.slice(at + 1), ...all.slice(0, at + 1)]
    from.find((item) => item.textContent?.trim().toLowerCase().startsWith(e.key.toLowerCase()))?.focus()
  }
}

const itemClass = "relative flex min-h-8 w-full items-center gap-2 rounded-md px-2 text-left text-sm hover:bg-hover focus-visible:bg-hover aria-disabled:opacity-50"

export function MenuItem({ children, onSelect, danger = false, disabled = false }: { children: ReactNode; onSelect: () => void; danger?: boolean; disabled?: boolean }) {
  const close = useContext(Close)
  const select = () => {
    close()
    onSelect()
  }
  return (
    <button type="button" role="menuitem" tabIndex={-1} aria-disabled={disabled || undefined} onClick={disabled ? undefined : select} className={`${itemClass} ${danger ? "text-bad" : ""}`}>
      {children}
    </button>
  )
}

/** One of several; the chosen one has a mark. */
export function MenuChoices<T extends string>({ label, value, choices, onChoose }: { label: string; value: T; choices: readonly { value: T; label: string }[]; onChoose: (value: T) => void }) {
  const close = useContext(Close)
  const choose = (chosen: T) => {
    close()
    onChoose(chosen)
  }
  return (
    <div role="group" aria-label={label}>
      <MenuLabel>{label}</MenuLabel>
      {choices.map((c) => (
        <button key={c.value} type="button" role="menuitemradio" tabIndex={-1} aria-checked={c.value === value} onClick={() => choose(c.value)} className={`${itemClass} pl-8`}>
          {c.value === value && <Icon name="check" className="absolute left-2" />}
          {c.label}
        </button>
      ))}
    </div>
  )
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return (
    <div role="presentation" className="max-w-64 truncate px-2 pt-2 pb-1 text-xs font-medium text-muted">
      {children}
    </div>
  )
}

export function MenuLine() {
  return <div role="separator" className="my-1 border-t" />
}
