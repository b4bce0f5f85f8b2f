import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { useTranslation } from "react-i18next"
import { logOut, meQuery } from "../account/session"
import { languageNow, setLanguage } from "../i18n"
import { IconButton } from "../ui/button"
import { Icon } from "../ui/icon"
import { Menu, MenuChoices, MenuItem, MenuLabel, MenuLine } from "../ui/menu"
import { tellProblem } from "../ui/toast"
import { languageChoices } from "./language"
import { setTheme, theme, themes } from "./theme"

export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { data: me } = useQuery(meQuery)
  const leave = () =>
    logOut().then(
      () => navigate({ to: "/login" }),
      (thrown: unknown) => tellProblem(thrown),
    )
  return (
    <Menu
      align="end"
      trigger={
        <IconButton label={t("shell.account")}>
          <Icon name="person" />
        </IconButton>
      }
    >
      {me && <MenuLabel>{me.name ?? me.email ?? me.account_id}</MenuLabel>}
      <MenuItem onSelect={() => void navigate({ to: "/account" })}>{t("account.title")}</MenuItem>
      <MenuItem onSelect={onHelp}>{t("shell.help.title")}</MenuItem>
      <MenuLine />
      <MenuChoices label={t("shell.theme.label")} value={theme.use()} choices={themes.map((value) => ({ value, label: t(`shell.theme.${value}`) }))} onChoose={setTheme} />
      <MenuChoices label={t("shell.language")} value={languageNow()} choices={languageChoices} onChoose={(l) => void setLanguage(l)} />
      <MenuLine />
      <MenuItem onSelect={() => void leave()}>{t("shell.sign_out")}</MenuItem>
    </Menu>
  )
}
