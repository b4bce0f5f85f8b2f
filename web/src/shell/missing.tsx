import { Link } from "@tanstack/react-router"
import { useTranslation } from "react-i18next"
import { buttonClass } from "../ui/button"
import { Empty, PageHead } from "../ui/page"

/** There is nothing at this address, or nothing that this account may know of: the two look the same. */
export function NotFound() {
  const { t } = useTranslation()
  return (
    <>
      <PageHead title={t("shell.missing.title")} />
      <Empty
        icon="search"
        title={t("shell.missing.heading")}
        action={
          <Link to="/" className={buttonClass("primary")}>
            {t("shell.missing.home")}
          </Link>
        }
      >
        {t("shell.missing.about")}
      </Empty>
    </>
  )
}
