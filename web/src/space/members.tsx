import { useTranslation } from "react-i18next"
import { PageHead } from "../ui/page"

export function Members() {
  const { t } = useTranslation()
  return <PageHead title={t("space.members.title")} />
}
