import { useQuery } from "@tanstack/react-query"
import { type FormEvent, type ReactNode, useState } from "react"
import { useTranslation } from "react-i18next"
import { api, ok, type Schema } from "../api/client"
import { queryClient, usePages, useSend } from "../api/query"
import { languageNow, type Language, setLanguage } from "../i18n"
import { useFormat } from "../i18n/format"
import { languageChoices } from "../shell/language"
import { setTheme, type Theme, theme, themes } from "../shell/theme"
import { Button } from "../ui/button"
import { Copy } from "../ui/copy"
import { SelectField, TextField } from "../ui/field"
import { rowClass, Rows } from "../ui/list"
import { Loaded, PageHead } from "../ui/page"
import { ProblemNote } from "../ui/problem"
import { tell, tellProblem } from "../ui/toast"
import { type Me, meQuery, setPassword } from "./session"

export function AccountPage() {
  const { t } = useTranslation()
  const me = useQuery(meQuery)
  return (
    <>
      <PageHead title={t("account.title")} />
      <Loaded of={me}>
        {me.data && (
          <div className="flex max-w-3xl flex-col gap-8 pb-16">
            <Who me={me.data} />
            <Looks />
            <Password key={String(me.data.has_password)} hasPassword={me.data.has_password} />
            <Sessions />
          </div>
        )}
      </Loaded>
    </>
  )
}

function Section({ title, children, padded = true }: { title: string; children: ReactNode; padded?: boolean }) {
  return (
    <section>
      <h2 className="px-4 pb-2 text-lg font-semibold sm:px-6">{title}</h2>
      <div className={padded ? "px-4 sm:px-6" : ""}>{children}</div>
    </section>
  )
}

function Who({ me }: { me: Me }) {
  const { t } = useTranslation()
  return (
    <div className="px-4 sm:px-6">
      <dl className="grid gap-3 text-sm sm:grid-cols-2">
        <div>
          <dt className="text-muted">{t("account.name")}</dt>
          <dd>{me.name ?? t("ui.erased")}</dd>
        </div>
        <div>
          <dt className="text-muted">{t("account.email")}</dt>
          <dd className="break-words">{me.email ?? t("ui.erased")}</dd>
        </div>
        <div className="sm:col-span-2">
          <dt className="text-muted">{t("account.id")}</dt>
          <dd className="flex flex-wrap items-center gap-2">
            <code className="font-mono break-all">{me.account_id}</code>
            <Copy text={me.account_id} />
          </dd>
        </div>
      </dl>
    </div>
  )
}

function Looks() {
  const { t } = useTranslation()
  return (
    <Section title={t("account.looks")}>
      <div className="grid gap-4 sm:grid-cols-2">
        <SelectField label={t("shell.language")} value={languageNow()} onChange={(e) => void setLanguage(e.target.value as Language)}>
          {languageChoices.map((c) => (
            <option key={c.value} value={c.value} lang={c.value}>
              {c.label}
            </option>
          ))}
        </SelectField>
        <SelectField label={t("shell.theme.label")} value={theme.use()} onChange={(e) => setTheme(e.target.value as Theme)}>
          {themes.map((value) => (
            <option key={value} value={value}>
              {t(`shell.theme.${value}`)}
            </option>
          ))}
        </SelectField>
      </div>
    </Section>
  )
}

function Password({ hasPassword }: { hasPassword: boolean }) {
  const { t } = useTranslation()
  const [now, setNow] = useState("")
  const [next, setNext] = useState("")
  const { send, sending, problem } = useSend(setPassword, async () => {
    setNow("")
    setNext("")
    tell(t("account.password_set"))
    await queryClient.invalidateQueries({ queryKey: ["me"] })
  })
  const submit = (e: FormEvent) => {
    e.preventDefault()
    send({ password: next, current_password: now || undefined })
  }
  return (
    <Section title={t("account.password")}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <div className="grid gap-4 sm:grid-cols-2">
          {hasPassword && <TextField label={t("account.current_password")} hint={t("account.current_hint")} type="password" autoComplete="current-password" maxLength={256} value={now} onChange={(e) => setNow(e.target.value)} />}
          <TextField label={t("account.new_password")} hint={t("account.password_rule")} type="password" autoComplete="new-password" required minLength={12} maxLength={256} value={next} onChange={(e) => setNext(e.target.value)} />
        </div>
        {problem && <ProblemNote problem={problem} />}
        <p className="text-sm text-muted">{t("account.password_ends")}</p>
        <Button type="submit" busy={sending} className="self-start">
          {hasPassword ? t("account.change_password") : t("account.first.submit")}
        </Button>
      </form>
    </Section>
  )
}

type Session = Schema["Session"]

function Sessions() {
  const { t } = useTranslation()
  const pages = usePages<Session>(["me", "sessions"], (cursor) => ok(api.GET("/api/v1/me/sessions", { params: { query: { cursor } } })))
  return (
    <Section title={t("account.sessions")} padded={false}>
      <p className="px-4 pb-3 text-sm text-muted sm:px-6">{t("account.sessions_about")}</p>
      <Loaded of={pages} rows={2}>
        <Rows label={t("account.sessions")} paged={pages}>
          {pages.items.map((s) => (
            <SessionRow key={s.session_id} session={s} />
          ))}
        </Rows>
      </Loaded>
    </Section>
  )
}

function SessionRow({ session }: { session: Session }) {
  const { t } = useTranslation()
  const format = useFormat()
  const { send, sending } = useSend(
    (id: string) =>
      ok(api.DELETE("/api/v1/me/sessions/{session}", { params: { path: { session: id } } })).catch((thrown: unknown) => {
        tellProblem(thrown)
        throw thrown
      }),
    () => queryClient.invalidateQueries({ queryKey: ["me", "sessions"] }),
  )
  return (
    <li className={rowClass}>
      <div className="min-w-0">
        <p className="truncate text-sm" title={session.client}>
          {session.client || t("account.unknown_client")}
        </p>
        <p className="text-xs text-muted">
          {t(`account.by_${session.method}`, { when: format.dateTime(session.created_at) })}
          {" · "}
          {t("account.used", { when: format.ago(session.used_at) })}
        </p>
      </div>
      <span className="ml-auto shrink-0 text-sm">
        {session.current ? (
          <span className="text-muted">{t("account.this_session")}</span>
        ) : (
          <Button kind="quiet" data-row busy={sending} onClick={() => send(session.session_id)}>
            {t("account.revoke")}
          </Button>
        )}
      </span>
    </li>
  )
}
