import { useTranslation } from "react-i18next"
import { PageHead } from "../ui/page"

export function AgentPage() {
  const { t } = useTranslation()
  return <PageHead title={t("shell.place.agents")} />
}
