import { type ReactNode, useEffect, useId, useRef } from "react"
import { useTranslation } from "react-i18next"
import type { Problem } from "../api/problem"
import { Button, IconButton } from "./button"
import { Icon } from "./icon"
import { ProblemNote } from "./problem"

type DialogProps = { open: boolean; onClose: () => void; title: string; children: ReactNode; wide?: boolean }

/**
 * A modal dialog: the browser's own, which keeps the focus inside, closes with Escape and gives the focus back.
 * What is in it is made anew each time it opens.
 */
export function Dialog({ open, onClose, title, children, wide = false }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const heading = useId()
  const { t } = useTranslation()
  useEffect(() => {
    const dialog = ref.current
    if (open && dialog && !dialog.open) dialog.showModal()
    else if (!open && dialog?.open) dialog.close()
  }, [open])
  return (
    <dialog
      ref={ref}
      aria-labelledby={heading}
      onClose={onClose}
      onMouseDown={(e) => e.target === e.currentTarget && e.currentTarget.close()}
      className={`max-h-[85dvh] w-[calc(100vw-2rem)] overflow-visible rounded-lg bg-surface p-0 shadow-raised ${wide ? "max-w-3xl" : "max-w-lg"}`}
    >
      {open && (
        <div className="flex max-h-[85dvh] flex-col">
          <header className="flex items-center justify-between gap-2 border-b px-4 py-2.5">
            <h2 id={heading} className="text-lg font-semibold">
              {title}
            </h2>
            <IconButton label={t("ui.close")} onClick={() => ref.current?.close()}>
              <Icon name="close" />
            </IconButton>
          </header>
          <div className="overflow-y-auto p-4">{children}</div>
        </div>
      )}
    </dialog>
  )
}

type ConfirmProps = {
  open: boolean
  onClose: () => void
  title: string
  children: ReactNode
  action: string
  onConfirm: () => void
  busy?: boolean
  problem?: Problem | null
}

/** Asks before something that cannot be taken back. The focus is on the way out. */
export function Confirm({ open, onClose, title, children, action, onConfirm, busy, problem }: ConfirmProps) {
  const { t } = useTranslation()
  return (
    <Dialog open={open} onClose={onClose} title={title}>
      <div className="flex flex-col gap-4">
        <div>{children}</div>
        {problem && <ProblemNote problem={problem} />}
        <div className="flex justify-end gap-2">
          <Button autoFocus onClick={onClose}>
            {t("ui.keep")}
          </Button>
          <Button kind="danger" busy={busy} onClick={onConfirm}>
            {action}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
