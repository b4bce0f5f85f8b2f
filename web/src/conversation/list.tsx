import { useTranslation } from "react-i18next"
import { PageHead } from "../ui/page"

export function ConversationList() {
  const { t } = useTranslation()
  return <PageHead title={t("shell.place.conversations")} />
}
