import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type FormEvent, useState } from "react"
import { useTranslation } from "react-i18next"
import { meQuery } from "../account/session"
import { api, keyed, ok } from "../api/client"
import { queryClient, useSend } from "../api/query"
import { useFormat } from "../i18n/format"
import { Button } from "../ui/button"
import { Confirm, Dialog } from "../ui/dialog"
import { SelectBox, SelectField, TextField } from "../ui/field"
import { Icon } from "../ui/icon"
import { rowClass, Rows } from "../ui/list"
import { Loaded, PageHead } from "../ui/page"
import { ProblemNote } from "../ui/problem"
import { tell } from "../ui/toast"
import { type Member, membersQuery, type Role, roles } from "./member"
import { useSpace } from "./scope"
import { mayManage, type Space } from "./space"

const changed = (space: Space) =>
  Promise.all([queryClient.invalidateQueries({ queryKey: ["space", space.space_id, "members"] }), queryClient.invalidateQueries({ queryKey: ["spaces"] })])

/** The roles that somebody may give and take: owners all, admins the two lower ones. */
const grantable = (space: Space): readonly Role[] => (space.role === "owner" ? roles : space.role === "admin" ? ["member", "auditor"] : [])

export function Members() {
  const { t } = useTranslation()
  const space = useSpace()
  const members = useQuery(membersQuery(space.space_id))
  const { data: me } = useQuery(meQuery)
  const [adding, setAdding] = useState(false)
  const [removing, setRemoving] = useState<Member | null>(null)
  return (
    <>
      <PageHead title={t("space.members.title")}>
        {mayManage(space) && (
          <Button kind="primary" onClick={() => setAdding(true)}>
            <Icon name="plus" />
            {t("space.members.add")}
          </Button>
        )}
      </PageHead>
      {!mayManage(space) && <p className="px-4 pb-3 text-sm text-muted sm:px-6">{t("space.members.your_role", { role: t(`space.role.${space.role}`) })}</p>}
      <Loaded of={members}>
        <Rows label={t("space.members.title")}>
          {members.data?.map((m) => (
            <Row key={m.account_id} member={m} self={m.account_id === me?.account_id} onRemove={() => setRemoving(m)} />
          ))}
        </Rows>
      </Loaded>
      <Dialog open={adding} onClose={() => setAdding(false)} title={t("space.members.add")}>
        <Add onDone={() => setAdding(false)} />
      </Dialog>
      <Remove member={removing} self={removing?.account_id === me?.account_id} onClose={() => setRemoving(null)} />
    </>
  )
}

function Row({ member, self, onRemove }: { member: Member; self: boolean; onRemove: () => void }) {
  const { t } = useTranslation()
  const format = useFormat()
  const space = useSpace()
  const name = member.name ?? t("space.somebody", { id: member.account_id.slice(0, 8) })
  const choices = grantable(space)
  const change = useSend(
    (role: Role) => ok(api.PATCH("/api/v1/spaces/{space}/memberships/{account}", { params: { path: { space: space.space_id, account: member.account_id } }, body: { role } })),
    () => changed(space),
  )
  const mayChange = choices.includes(member.role)
  return (
    <li className={`${rowClass} flex-wrap`}>
      <Icon name="person" className="text-muted" />
      <span className="min-w-0 truncate font-medium">{name}</span>
      {self && <span className="rounded-sm bg-sunken px-1.5 text-xs text-muted">{t("space.members.you")}</span>}
      <span className="hidden text-xs text-muted md:inline">{t("space.members.since", { when: format.dateTime(member.since) })}</span>
      <span className="ml-auto flex items-center gap-2">
        {mayChange ? (
          <SelectBox label={t("space.members.role_of", { name })} value={member.role} disabled={change.sending} onChange={(e) => change.send(e.target.value as Role)}>
            {choices.map((role) => (
              <option key={role} value={role}>
                {t(`space.role.${role}`)}
              </option>
            ))}
          </SelectBox>
        ) : (
          <span className="text-sm text-muted">{t(`space.role.${member.role}`)}</span>
        )}
        {(mayChange || self) && (
          <Button kind="quiet" data-row onClick={onRemove}>
            {self ? t("space.members.leave") : t("space.members.remove")}
          </Button>
        )}
      </span>
      {change.problem && (
        <div className="w-full">
          <ProblemNote problem={change.problem} />
        </div>
      )}
    </li>
  )
}

function Add({ onDone }: { onDone: () => void }) {
  const { t } = useTranslation()
  const space = useSpace()
  const [account, setAccount] = useState("")
  const [role, setRole] = useState<Role>("member")
  const { send, sending, problem } = useSend(
    (body: { account_id: string; role: Role }, key) => ok(api.POST("/api/v1/spaces/{space}/memberships", { params: { path: { space: space.space_id }, header: keyed(key) }, body })),
    async () => {
      await changed(space)
      tell(t("space.members.added"))
      onDone()
    },
  )
  const submit = (e: FormEvent) => {
    e.preventDefault()
    send({ account_id: account.trim().toLowerCase(), role })
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <TextField label={t("space.members.account")} hint={t("space.members.account_hint")} error={problem?.field("account_id")} required pattern="\s*[0-9a-fA-F\-]{36}\s*" value={account} onChange={(e) => setAccount(e.target.value)} spellCheck={false} autoFocus className="font-mono" />
      <SelectField label={t("space.members.role")} hint={t(`space.role_about.${role}`)} value={role} onChange={(e) => setRole(e.target.value as Role)}>
        {grantable(space).map((r) => (
          <option key={r} value={r}>
            {t(`space.role.${r}`)}
          </option>
        ))}
      </SelectField>
      {problem && <ProblemNote problem={problem} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onDone}>{t("ui.keep")}</Button>
        <Button type="submit" kind="primary" busy={sending}>
          {t("space.members.add")}
        </Button>
      </div>
    </form>
  )
}

function Remove({ member, self, onClose }: { member: Member | null; self: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  const space = useSpace()
  const navigate = useNavigate()
  const { send, sending, problem, reset } = useSend(
    (account: string) => ok(api.DELETE("/api/v1/spaces/{space}/memberships/{account}", { params: { path: { space: space.space_id, account } } })),
    async () => {
      close()
      if (self) await navigate({ to: "/" })
      await changed(space)
    },
  )
  const close = () => {
    reset()
    onClose()
  }
  const name = member?.name ?? t("space.somebody", { id: member?.account_id.slice(0, 8) })
  return (
    <Confirm
      open={member !== null}
      onClose={close}
      title={self ? t("space.members.leave_title") : t("space.members.remove_title", { name })}
      action={self ? t("space.members.leave") : t("space.members.remove")}
      onConfirm={() => member && send(member.account_id)}
      busy={sending}
      problem={problem}
    >
      {self ? t("space.members.leave_about") : t("space.members.remove_about")}
    </Confirm>
  )
}
