import { Outlet, useRouterState } from "@tanstack/react-router"
import { lazy, Suspense, useEffect, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { buttonClass, IconButton } from "../ui/button"
import { Icon } from "../ui/icon"
import { useKeys } from "../ui/keys"
import { focusRow } from "../ui/list"
import { AccountMenu } from "./account_menu"
import { Help } from "./help"
import { Drawer, Nav } from "./nav"
import { SpaceSwitcher } from "./space_switcher"
import { Connection, ConnectionLost, Position } from "./status"

const Palette = lazy(() => import("./palette").then((m) => ({ default: m.Palette })))

/** What is around every page: where one is, where one can go, and how the connection is. */
export function Frame() {
  const { t } = useTranslation()
  const main = useRef<HTMLElement>(null)
  const [open, setOpen] = useState<"palette" | "help" | "drawer" | null>(null)
  const close = () => setOpen(null)
  useKeys({
    "mod+k": () => setOpen("palette"),
    "?": () => setOpen("help"),
    j: () => main.current && focusRow(main.current, 1),
    k: () => main.current && focusRow(main.current, -1),
  })
  usePathFocus(main, close)
  return (
    <div className="flex h-dvh flex-col">
      <a href="#main" className={`skip ${buttonClass("primary")}`}>
        {t("shell.skip")}
      </a>
      <header className="flex h-12 shrink-0 items-center gap-1 border-b bg-surface px-2">
        <IconButton label={t("shell.menu")} className="md:hidden" onClick={() => setOpen("drawer")}>
          <Icon name="menu" />
        </IconButton>
        <SpaceSwitcher />
        <div className="ml-auto flex items-center gap-1">
          <Position />
          <Connection />
          <button type="button" onClick={() => setOpen("palette")} aria-keyshortcuts="Control+K" className={`${buttonClass("quiet")} px-2 text-muted`}>
            <Icon name="search" />
            <span className="sr-only sm:not-sr-only">{t("shell.palette.button")}</span>
            <kbd aria-hidden="true" className="hidden rounded-sm border border-line px-1 font-sans text-xs sm:inline">{t("shell.palette.key")}</kbd>
          </button>
          <IconButton label={t("shell.help.title")} className="max-sm:hidden" onClick={() => setOpen("help")}>
            <Icon name="help" />
          </IconButton>
          <AccountMenu onHelp={() => setOpen("help")} />
        </div>
      </header>
      <ConnectionLost />
      <div className="flex min-h-0 flex-1">
        <Nav className="hidden w-52 shrink-0 overflow-y-auto border-r bg-sunken p-2 md:block" />
        <main ref={main} id="main" tabIndex={-1} className="min-w-0 flex-1 overflow-y-auto focus-visible:outline-none">
          <Outlet />
        </main>
      </div>
      <Drawer open={open === "drawer"} onClose={close} />
      <Help open={open === "help"} onClose={close} />
      {open === "palette" && (
        <Suspense>
          <Palette onClose={close} />
        </Suspense>
      )}
    </div>
  )
}

/** A new page begins at its top, and whoever reads it by ear begins there too. What was open closes. */
function usePathFocus(main: React.RefObject<HTMLElement | null>, close: () => void) {
  const path = useRouterState({ select: (s) => s.location.pathname })
  const first = useRef(true)
  useEffect(() => {
    if (first.current) {
      first.current = false
      return
    }
    close()
    main.current?.scrollTo(0, 0)
    main.current?.focus({ preventScroll: true })
  }, [path])
}
