import { Link } from "@tanstack/react-router"
import { useEffect, useRef } from "react"
import { useTranslation } from "react-i18next"
import { spaceName, useShownSpace } from "../space/space"
import { Icon, type IconName } from "../ui/icon"

/** The places of a space; what does not exist yet is not here. */
export const places = [
  { to: "/s/$space/conversations", icon: "conversation", text: "shell.place.conversations" },
  { to: "/s/$space/tasks", icon: "task", text: "shell.place.tasks" },
  { to: "/s/$space/agents", icon: "agent", text: "shell.place.agents" },
  { to: "/s/$space/files", icon: "file", text: "shell.place.files" },
  { to: "/s/$space/members", icon: "members", text: "shell.place.members" },
] as const satisfies readonly { to: string; icon: IconName; text: string }[]

export function Nav({ className = "" }: { className?: string }) {
  const { t } = useTranslation()
  const space = useShownSpace()
  if (!space) return null
  return (
    <nav aria-label={t("shell.places")} className={className}>
      <ul className="flex flex-col gap-0.5">
        {places.map((place) => (
          <li key={place.to}>
            <Link
              to={place.to}
              params={{ space: spaceName(space) }}
              className="flex h-8 items-center gap-2.5 rounded-md px-2 text-sm text-muted hover:bg-hover hover:text-text"
              activeProps={{ className: "bg-hover font-medium text-text!", "aria-current": "page" }}
            >
              <Icon name={place.icon} />
              {t(place.text)}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}

/** The places on a narrow screen: a panel that slides over the page. */
export function Drawer({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal()
    else if (!open && ref.current?.open) ref.current.close()
  }, [open])
  return (
    <dialog
      ref={ref}
      aria-label={t("shell.places")}
      onClose={onClose}
      onClick={(e) => (e.target === e.currentTarget || (e.target as HTMLElement).closest("a")) && e.currentTarget.close()}
      className="m-0 h-dvh max-h-none w-64 bg-sunken p-0"
    >
      {open && <Nav className="p-3" />}
    </dialog>
  )
}
