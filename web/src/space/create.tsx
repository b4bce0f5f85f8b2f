import { useNavigate } from "@tanstack/react-router"
import { type FormEvent, useState } from "react"
import { useTranslation } from "react-i18next"
import { api, keyed, ok } from "../api/client"
import { queryClient, useSend } from "../api/query"
import { Button } from "../ui/button"
import { Dialog } from "../ui/dialog"
import { TextField } from "../ui/field"
import { ProblemNote } from "../ui/problem"

/** What a name suggests as a slug; empty when it has no Latin letters or digits. */
export const slugOf = (name: string) =>
  name.normalize("NFKD").toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 63).replace(/^-+|-+$/g, "")

export function CreateSpace({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  return (
    <Dialog open={open} onClose={onClose} title={t("space.create.title")}>
      <Form onDone={onClose} />
    </Dialog>
  )
}

function Form({ onDone }: { onDone: () => void }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const [name, setName] = useState("")
  const [slug, setSlug] = useState<string | null>(null)
  const body = { name: name.trim(), slug: slug ?? slugOf(name) }
  const { send, sending, problem } = useSend(
    (b: typeof body, key) => ok(api.POST("/api/v1/spaces", { body: b, params: { header: keyed(key) } })),
    async (_, b) => {
      await queryClient.invalidateQueries({ queryKey: ["spaces"] })
      onDone()
      void navigate({ to: "/s/$space/conversations", params: { space: b.slug } })
    },
  )
  const submit = (e: FormEvent) => {
    e.preventDefault()
    send(body)
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <TextField label={t("space.name")} required maxLength={200} value={name} onChange={(e) => setName(e.target.value)} autoFocus />
      <TextField label={t("space.slug")} hint={t("space.slug_rule")} required maxLength={63} pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?" value={body.slug} onChange={(e) => setSlug(e.target.value)} spellCheck={false} autoCapitalize="none" />
      {problem && <ProblemNote problem={problem} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onDone}>{t("ui.keep")}</Button>
        <Button type="submit" kind="primary" busy={sending}>
          {t("space.create.submit")}
        </Button>
      </div>
    </form>
  )
}
