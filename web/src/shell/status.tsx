import { useTranslation } from "react-i18next"
import { useFormat } from "../i18n/format"
import { liveStatus } from "../live/status"

/** The position in the log that the page shows. */
export function Position() {
  const { t } = useTranslation()
  const format = useFormat()
  const { position } = liveStatus.use()
  if (position === null) return null
  return (
    <span className="hidden px-2 text-xs whitespace-nowrap text-muted tabular-nums sm:inline" title={t("shell.position.about")}>
      {t("shell.position.at", { position: format.number(position) })}
    </span>
  )
}

/** Whether news arrive: a filled dot, a ring, or a crossed ring, with the word for it. */
export function Connection() {
  const { t } = useTranslation()
  const { state } = liveStatus.use()
  if (state === "off") return null
  const look = { live: "text-ok", connecting: "text-muted", lost: "text-bad", faulted: "text-bad" }[state]
  return (
    <span className={`flex items-center gap-1.5 px-2 text-xs whitespace-nowrap ${look}`}>
      <svg aria-hidden="true" viewBox="0 0 12 12" className="size-3" fill={state === "live" ? "currentColor" : "none"} stroke="currentColor" strokeWidth="1.5">
        <path d={look === "text-bad" ? "M6 2a4 4 0 1 1 0 8a4 4 0 0 1 0-8M3 9l6-6" : "M6 2a4 4 0 1 1 0 8a4 4 0 0 1 0-8"} />
      </svg>
      <span className="sr-only sm:not-sr-only">{t(`shell.connection.${state}`)}</span>
    </span>
  )
}

/** A lost connection, with what is still true meanwhile. */
export function ConnectionLost() {
  const { t } = useTranslation()
  const { state, position } = liveStatus.use()
  const format = useFormat()
  return (
    <div role="status">
      {state === "lost" && (
        <p className="border-b border-warn bg-warn-soft px-4 py-1.5 text-sm text-warn">
          {position === null ? t("shell.connection.gone") : t("shell.connection.gone_at", { position: format.number(position) })}
        </p>
      )}
      {state === "faulted" && <p className="border-b border-bad bg-bad-soft px-4 py-1.5 text-sm text-bad">{t("shell.connection.faulted_about")}</p>}
    </div>
  )
}
