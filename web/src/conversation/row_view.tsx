import { lazy, memo, Suspense } from "react"
import { useTranslation } from "react-i18next"
import { isErased, type Text } from "../fold/data"
import { problemOf } from "../api/problem"
import { useFormat } from "../i18n/format"
import { Button } from "../ui/button"
import { ProblemNote } from "../ui/problem"
import { CallRow } from "./call_row"
import type { Outbox } from "./outbox"
import type { Row } from "./row"
import { RunRow } from "./run_row"
import type { Thread } from "./thread"

const loading = import("./markdown")
const Markdown = lazy(() => loading)

type RowProps = { row: Row; thread: Thread; outbox: Outbox; mayWork: boolean }

/** One row. It is drawn again only when it is another row object or its thing changed. */
export const RowView = memo(
  function RowView({ row, thread, outbox, mayWork }: RowProps) {
    switch (row.type) {
      case "message":
        return <Said text={row.turn.text} at={row.turn.postedAt} waiting={row.turn.state === "waiting"} />
      case "pending":
        return <PendingRow row={row} outbox={outbox} />
      case "run":
        return <RunRow row={row} thread={thread} mayWork={mayWork} />
      case "answer":
        return <Answer text={row.text} still={row.still} broken={row.broken} />
      case "call":
        return <CallRow call={row.call} run={row.run} />
      case "end":
        return <Failure code={row.code} message={row.message} />
    }
  },
  (a, b) => same(a.row, b.row) && a.mayWork === b.mayWork && a.thread === b.thread,
)

function same(a: Row, b: Row): boolean {
  if (a === b) return true
  if (a.type === "answer" && b.type === "answer") return a.text === b.text && a.still === b.still && a.broken === b.broken
  if (a.type === "call" && b.type === "call") return a.call === b.call && a.run.epoch === b.run.epoch && a.run.status === b.run.status
  if (a.type === "message" && b.type === "message") return a.turn === b.turn
  return false
}

function Erased() {
  return <em className="text-muted">{useTranslation().t("conversation.erased")}</em>
}

/** What a person wrote. */
export function Said({ text, at, waiting }: { text: Text; at: string; waiting: boolean }) {
  const { t } = useTranslation()
  const format = useFormat()
  return (
    <div className="pt-4">
      <div className="ml-auto w-fit max-w-[85%] rounded-lg bg-accent-soft px-3 py-2">
        {/* What waits is short, so that the answer that is being given stays in sight. */}
        <p className={`break-words whitespace-pre-wrap ${waiting ? "line-clamp-2" : ""}`}>{isErased(text) ? <Erased /> : text}</p>
      </div>
      <p className="mt-1 text-right text-xs text-muted">
        {waiting && <>{t("conversation.waiting")} · </>}
        <time dateTime={at}>{format.clock(at)}</time>
      </p>
    </div>
  )
}

function PendingRow({ row, outbox }: { row: Extract<Row, { type: "pending" }>; outbox: Outbox }) {
  const { t } = useTranslation()
  const { pending } = row
  return (
    <div className="pt-4">
      <div className="ml-auto w-fit max-w-[85%] rounded-lg border border-dashed border-edge px-3 py-2">
        <p className={`break-words whitespace-pre-wrap ${pending.state === "refused" ? "" : "line-clamp-2"}`}>{pending.text}</p>
      </div>
      {pending.state !== "refused" ? (
        <p className="mt-1 text-right text-xs text-muted">{t("conversation.sending")}</p>
      ) : (
        <div className="mt-1 ml-auto flex max-w-[85%] flex-col gap-2">
          <ProblemNote problem={problemOf(pending.problem)} again={() => outbox.again(pending.key)} />
          <Button className="self-end" onClick={() => outbox.takeBack(pending.key)}>
            {t("conversation.take_back")}
          </Button>
        </div>
      )}
    </div>
  )
}

/** What the model said, or is saying. */
export function Answer({ text, still, broken }: { text: Text; still: boolean; broken: boolean }) {
  const { t } = useTranslation()
  if (isErased(text)) return <Erased />
  if (!text) return null
  return (
    <div className="max-w-prose py-1">
      <Suspense fallback={<p className="break-words whitespace-pre-wrap">{text}</p>}>
        <Markdown text={text} still={still} />
      </Suspense>
      {broken && <p className="text-xs text-muted">{t("conversation.words_lost")}</p>}
    </div>
  )
}

export function Failure({ code, message }: { code: string; message: Text }) {
  const { t } = useTranslation()
  return (
    <div className="my-1 max-w-prose rounded-md border border-bad bg-bad-soft p-3 text-sm">
      <p className="font-medium">{t("conversation.failed")}</p>
      {typeof message === "string" && <p className="break-words whitespace-pre-wrap">{message}</p>}
      <code className="font-mono text-xs break-all">{code}</code>
    </div>
  )
}
