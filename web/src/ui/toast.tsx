import { useTranslation } from "react-i18next"
import { type Problem, problemOf } from "../api/problem"
import { IconButton } from "./button"
import { Icon } from "./icon"
import { ProblemNote } from "./problem"
import { createStore } from "./store"

type Toast = { id: number; text?: string; problem?: Problem }

const toasts = createStore<Toast[]>([])
let last = 0

function show(toast: Omit<Toast, "id">, forMs: number | null) {
  const id = ++last
  toasts.set([...toasts.get().slice(-3), { id, ...toast }])
  if (forMs !== null) setTimeout(() => dismiss(id), forMs)
}

const dismiss = (id: number) => toasts.set(toasts.get().filter((t) => t.id !== id))

/** Says that something was done. It goes by itself, so it must not be the only place where one can see it. */
export const tell = (text: string) => show({ text }, 5000)

/** Says that something was refused. It stays until it is closed. */
export const tellProblem = (thrown: unknown) => show({ problem: problemOf(thrown) }, null)

export function Toasts() {
  const { t } = useTranslation()
  return (
    <div role="status" aria-label={t("ui.news")} className="pointer-events-none fixed right-4 bottom-4 left-4 z-40 ml-auto flex max-w-sm flex-col gap-2">
      {toasts.use().map((toast) => (
        <div key={toast.id} className="pointer-events-auto flex animate-rise items-start gap-1 rounded-lg bg-surface p-2 pl-3 shadow-raised">
          <div className="min-w-0 flex-1 py-1 text-sm break-words">{toast.problem ? <ProblemNote problem={toast.problem} /> : toast.text}</div>
          <IconButton label={t("ui.close")} onClick={() => dismiss(toast.id)}>
            <Icon name="close" />
          </IconButton>
        </div>
      ))}
    </div>
  )
}
