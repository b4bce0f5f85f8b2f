import { createStore, kept } from "../ui/store"

export type Theme = "system" | "light" | "dark"
export const themes = ["system", "light", "dark"] as const

const read = (): Theme => {
  const chosen = kept.get("theme")
  return chosen === "light" || chosen === "dark" ? chosen : "system"
}

export const theme = createStore<Theme>(read())

/** Takes the theme at once, and keeps the choice; public/theme.js reads it before the first paint. */
export function setTheme(next: Theme) {
  kept.set("theme", next === "system" ? null : next)
  if (next === "system") delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = next
  theme.set(next)
}
