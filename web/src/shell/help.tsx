import { useTranslation } from "react-i18next"
import { Dialog } from "../ui/dialog"

const keys = [
  { keys: ["Ctrl", "K"], text: "shell.help.palette" },
  { keys: ["j"], text: "shell.help.down" },
  { keys: ["k"], text: "shell.help.up" },
  { keys: ["Enter"], text: "shell.help.enter" },
  { keys: ["Esc"], text: "shell.help.escape" },
  { keys: ["?"], text: "shell.help.help" },
] as const

export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  return (
    <Dialog open={open} onClose={onClose} title={t("shell.help.title")}>
      <dl className="grid grid-cols-[auto_1fr] items-center gap-x-4 gap-y-2">
        {keys.map((k) => (
          <div key={k.text} className="contents">
            <dt className="flex gap-1">
              {k.keys.map((key) => (
                <kbd key={key} className="min-w-6 rounded-sm border border-edge px-1.5 text-center font-sans text-sm">
                  {key}
                </kbd>
              ))}
            </dt>
            <dd>{t(k.text)}</dd>
          </div>
        ))}
      </dl>
      <p className="pt-4 text-sm text-muted">
        <a href="/docs" className="underline underline-offset-2">
          {t("shell.help.api")}
        </a>
      </p>
    </Dialog>
  )
}
