import { useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { type Problem, problemOf } from "../api/problem"
import { useFormat } from "../i18n/format"
import { Button } from "../ui/button"
import { ProblemNote } from "../ui/problem"
import { tell } from "../ui/toast"
import { filesChanged } from "./query"
import { type Picked, upload } from "./upload"

type Upload = { picked: Picked[]; bytes: number; sent: number; problem: Problem | null }

/** One upload at a time: what is picked while one runs is refused in words. */
export function useUpload(space: string) {
  const { t } = useTranslation()
  const [now, setNow] = useState<Upload | null>(null)
  const stop = useRef<AbortController | null>(null)
  const start = (picked: Picked[]) => {
    if (picked.length === 0) return
    if (stop.current) return tell(t("file.one_at_a_time"))
    const abort = (stop.current = new AbortController())
    const bytes = picked.reduce((sum, p) => sum + p.file.size, 0)
    setNow({ picked, bytes, sent: 0, problem: null })
    upload(space, picked, (sent) => setNow((u) => u && { ...u, sent }), abort.signal)
      .then(
        () => {
          setNow(null)
          tell(t("file.uploaded", { count: picked.length }))
        },
        (thrown: unknown) => setNow((u) => (abort.signal.aborted ? null : u && { ...u, problem: problemOf(thrown) })),
      )
      .finally(() => {
        stop.current = null
        void filesChanged(space) // of several requests some may have been taken
      })
  }
  return { now, start, cancel: () => stop.current?.abort(), close: () => setNow(null) }
}

export function Uploading({ now, start, cancel, close }: ReturnType<typeof useUpload>) {
  const { t } = useTranslation()
  const format = useFormat()
  if (!now) return null
  if (now.problem) {
    return (
      <div className="flex flex-col gap-2 px-4 pb-4 sm:px-6">
        <ProblemNote problem={now.problem} again={() => start(now.picked)} />
        <Button className="self-start" onClick={close}>
          {t("ui.close")}
        </Button>
      </div>
    )
  }
  const text = t("file.uploading", { count: now.picked.length, sent: format.bytes(now.sent), all: format.bytes(now.bytes) })
  return (
    <div className="mx-4 mb-4 flex items-center gap-3 rounded-md border bg-surface p-3 sm:mx-6">
      <div className="flex min-w-0 flex-1 flex-col gap-1">
        <span className="text-sm">{text}</span>
        <progress aria-label={text} value={now.sent} max={Math.max(now.bytes, 1)} className="h-1.5 w-full accent-accent" />
      </div>
      <Button onClick={cancel}>{t("ui.keep")}</Button>
    </div>
  )
}
