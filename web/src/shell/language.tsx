import { useTranslation } from "react-i18next"
import { languageNow, setLanguage } from "../i18n"
import { Button } from "../ui/button"
import { Icon } from "../ui/icon"
import { Menu, MenuChoices } from "../ui/menu"

/** Each language in its own words: whoever cannot read the page must find it. */
export const languageChoices = [
  { value: "en", label: "English" },
  { value: "zh", label: "中文" },
] as const

export function LanguageMenu() {
  const { t } = useTranslation()
  const now = languageNow()
  return (
    <Menu
      align="end"
      trigger={
        <Button kind="quiet">
          <span className="sr-only">{t("shell.language")}</span>
          {languageChoices.find((c) => c.value === now)?.label}
          <Icon name="down" />
        </Button>
      }
    >
      <MenuChoices label={t("shell.language")} value={now} choices={languageChoices} onChoose={(l) => void setLanguage(l)} />
    </Menu>
  )
}
