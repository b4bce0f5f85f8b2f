import { useEffect, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { ended } from "../fold/run"
import type { ThreadState } from "./thread"

/**
 * Tells who reads by ear what has come to an end, and nothing while it streams: one sentence for each run that
 * was seen going on.
 */
export function Announcer({ state }: { state: ThreadState }) {
  const { t } = useTranslation()
  const open = useRef(new Set<string>())
  const [sentence, setSentence] = useState("")
  const { turns } = state.conversation
  useEffect(() => {
    const numbers = (run: string) => turns.find((turn) => turn.run === run)?.number ?? ""
    for (const [id, run] of state.runs) {
      if (!ended(run.status)) open.current.add(id)
      else if (open.current.delete(id))
        setSentence(t(`conversation.said.${run.status as "succeeded" | "failed" | "cancelled"}`, { number: numbers(id) }))
    }
  }, [state.runs, turns, t])
  return (
    <p role="status" className="sr-only">
      {sentence}
    </p>
  )
}
