import i18next from "i18next"
import { initReactI18next } from "react-i18next"
import { kept } from "../ui/store"

export const languages = ["en", "zh"] as const
export type Language = (typeof languages)[number]

/** Only the language that is shown is loaded. Each folder has its texts beside it: text.en.json and text.zh.json. */
const catalogues: Record<Language, () => Promise<{ default: Record<string, unknown> }>> = {
  en: () => import("./en"),
  zh: () => import("./zh"),
}

const isLanguage = (value: string | null | undefined): value is Language => languages.includes(value as Language)

/** What was chosen, else the first that the browser asks for and there is, else English. */
function preferred(): Language {
  const chosen = kept.get("language")
  if (isLanguage(chosen)) return chosen
  for (const asked of navigator.languages) {
    const short = asked.slice(0, 2).toLowerCase()
    if (isLanguage(short)) return short
  }
  return "en"
}

async function load(language: Language) {
  if (!i18next.hasResourceBundle(language, "t")) {
    const catalogue = await catalogues[language]()
    i18next.addResourceBundle(language, "t", catalogue.default)
  }
}

/** Loads the language of this browser. */
export async function startTexts() {
  await i18next.use(initReactI18next).init({
    lng: "en",
    fallbackLng: false,
    ns: ["t"],
    defaultNS: "t",
    resources: {},
    interpolation: { escapeValue: false }, // React escapes
    returnNull: false,
  })
  await setLanguage(preferred(), false)
}

/** Shows another language, and keeps the choice. */
export async function setLanguage(language: Language, keep = true) {
  await load(language)
  await i18next.changeLanguage(language)
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en"
  if (keep) kept.set("language", language)
}

export const languageNow = (): Language => (isLanguage(i18next.language) ? i18next.language : "en")
