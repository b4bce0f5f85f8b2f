import { getRouteApi, useRouter } from "@tanstack/react-router"
import { type FormEvent, useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { type Problem, problemOf } from "../api/problem"
import { LanguageMenu } from "../shell/language"
import { Mark } from "../shell/mark"
import { Button } from "../ui/button"
import { TextField } from "../ui/field"
import { ProblemNote } from "../ui/problem"
import { logIn, setPassword } from "./session"

const route = getRouteApi("/login")

/** Signing in with a code or a password; after a first code, setting the first password. */
export function Login() {
  const { t } = useTranslation()
  const { next, ended } = route.useSearch()
  const router = useRouter()
  const [step, setStep] = useState<"sign-in" | "password">("sign-in")
  const title = step === "sign-in" ? t("account.login.title") : t("account.first.title")
  useEffect(() => {
    document.title = `${title} · Cairn`
  }, [title])
  const goOn = () => router.history.push(next ?? "/")
  return (
    <div className="flex min-h-dvh flex-col bg-canvas">
      <div className="flex justify-end p-3">
        <LanguageMenu />
      </div>
      <main className="mx-auto flex w-full max-w-sm flex-col gap-6 px-4 pt-[8vh] pb-16">
        <Mark className="size-10" />
        <div className="flex flex-col gap-1">
          <h1 className="text-xl font-semibold">{title}</h1>
          <p className="text-muted">{step === "sign-in" ? (ended ? t("account.login.ended") : t("account.login.about")) : t("account.first.about")}</p>
        </div>
        {step === "sign-in" ? <SignIn onDone={(hasPassword) => (hasPassword ? goOn() : setStep("password"))} /> : <FirstPassword onDone={goOn} />}
      </main>
    </div>
  )
}

/** A form that is being sent: what it does, and what was refused. */
function useForm(act: () => Promise<void>) {
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const submit = async (e: FormEvent) => {
    e.preventDefault()
    if (busy) return
    setBusy(true)
    setProblem(null)
    try {
      await act()
    } catch (thrown) {
      setProblem(problemOf(thrown))
    } finally {
      setBusy(false)
    }
  }
  return { busy, problem, submit }
}

function SignIn({ onDone }: { onDone: (hasPassword: boolean) => void }) {
  const { t } = useTranslation()
  const [way, setWay] = useState<"password" | "code">("password")
  const [email, setEmail] = useState("")
  const [secret, setSecret] = useState("")
  const { busy, problem, submit } = useForm(async () => {
    const signedIn = await logIn(way === "code" ? { email: email.trim(), code: secret.trim() } : { email: email.trim(), password: secret })
    onDone(signedIn.has_password)
  })
  const other = way === "code" ? "password" : "code"
  return (
    <form onSubmit={(e) => void submit(e)} className="flex flex-col gap-4">
      <TextField label={t("account.email")} type="email" name="email" autoComplete="username" required maxLength={254} value={email} onChange={(e) => setEmail(e.target.value)} autoFocus />
      {way === "password" ? (
        <TextField key="password" label={t("account.password")} type="password" name="password" autoComplete="current-password" required maxLength={256} value={secret} onChange={(e) => setSecret(e.target.value)} />
      ) : (
        <TextField key="code" label={t("account.code")} hint={t("account.login.code_hint")} name="code" autoComplete="one-time-code" spellCheck={false} autoCapitalize="none" required maxLength={64} value={secret} onChange={(e) => setSecret(e.target.value)} />
      )}
      {problem && <ProblemNote problem={problem} />}
      <Button type="submit" kind="primary" busy={busy}>
        {t("account.login.submit")}
      </Button>
      <Button
        kind="quiet"
        onClick={() => {
          setWay(other)
          setSecret("")
        }}
      >
        {t(`account.login.with_${other}`)}
      </Button>
    </form>
  )
}

function FirstPassword({ onDone }: { onDone: () => void }) {
  const { t } = useTranslation()
  const [password, setPasswordText] = useState("")
  const [again, setAgain] = useState("")
  const differs = again !== "" && again !== password
  const { busy, problem, submit } = useForm(async () => {
    if (again !== password) return
    await setPassword({ password })
    onDone()
  })
  return (
    <form onSubmit={(e) => void submit(e)} className="flex flex-col gap-4">
      <TextField label={t("account.new_password")} hint={t("account.password_rule")} type="password" autoComplete="new-password" required minLength={12} maxLength={256} value={password} onChange={(e) => setPasswordText(e.target.value)} autoFocus />
      <TextField label={t("account.again_password")} error={differs ? t("account.differs") : undefined} type="password" autoComplete="new-password" required maxLength={256} value={again} onChange={(e) => setAgain(e.target.value)} />
      {problem && <ProblemNote problem={problem} />}
      <Button type="submit" kind="primary" busy={busy}>
        {t("account.first.submit")}
      </Button>
      <Button kind="quiet" onClick={onDone}>
        {t("account.first.later")}
      </Button>
    </form>
  )
}
