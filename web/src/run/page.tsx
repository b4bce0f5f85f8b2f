import { useTranslation } from "react-i18next"
import { PageHead } from "../ui/page"

export function RunPage() {
  const { t } = useTranslation()
  return <PageHead title={t("run.title")} />
}
