import { useTranslation } from "react-i18next"
import type { Schema } from "../api/client"

export type RunState = Schema["Run"]["state"]

export const runStates = ["queued", "starting", "running", "succeeded", "failed", "cancelled"] as const satisfies readonly RunState[]

const look: Record<RunState, { colour: string; shape: string; turns?: boolean; fill?: boolean }> = {
  queued: { colour: "text-muted", shape: "M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2" },
  starting: { colour: "text-accent", shape: "M8 2.2a5.8 5.8 0 0 1 5.8 5.8", turns: true },
  running: { colour: "text-accent", shape: "M8 2.2a5.8 5.8 0 1 1-5.8 5.8", turns: true },
  succeeded: { colour: "text-ok", shape: "M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2M5.4 8.2l1.9 1.9 3.4-4" },
  failed: { colour: "text-bad", shape: "M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2M5.9 5.9l4.2 4.2M10.1 5.9l-4.2 4.2" },
  cancelled: { colour: "text-muted", shape: "M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2M5.2 8h5.6" },
}

/** The state of a run in words and shape; the colour only repeats it. */
export function State({ of: state, short = false }: { of: RunState; short?: boolean }) {
  const { t } = useTranslation()
  const { colour, shape, turns } = look[state]
  const name = t(`ui.state.${state}`)
  return (
    <span className={`inline-flex items-center gap-1.5 text-sm whitespace-nowrap ${colour}`} title={short ? name : undefined}>
      <svg
        aria-hidden="true"
        viewBox="0 0 16 16"
        className={`size-4 shrink-0 ${turns ? "animate-turn" : ""}`}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        strokeLinecap="round"
        strokeDasharray={state === "queued" ? "2 2.6" : undefined}
      >
        <path d={shape} />
      </svg>
      <span className={short ? "sr-only" : ""}>{name}</span>
    </span>
  )
}

export const isActive = (state: RunState) => state === "queued" || state === "starting" || state === "running"
