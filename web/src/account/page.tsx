import { useTranslation } from "react-i18next"
import { PageHead } from "../ui/page"

export function AccountPage() {
  const { t } = useTranslation()
  return <PageHead title={t("account.title")} />
}
