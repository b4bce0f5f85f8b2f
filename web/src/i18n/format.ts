import { useTranslation } from "react-i18next"

/** Numbers and times as the reader's language and region write them. */
export type Format = {
  number: (n: number) => string
  bytes: (n: number) => string
  duration: (ms: number) => string
  dateTime: (iso: string) => string
  clock: (iso: string) => string
  ago: (iso: string, now?: number) => string
}

/** The browser's own region of the language, if it has one. */
function localeOf(language: string): string {
  const own = typeof navigator === "undefined" ? undefined : navigator.languages.find((l) => l.toLowerCase().startsWith(language))
  return own ?? (language === "zh" ? "zh-CN" : "en")
}

const made = new Map<string, Format>()

export function formatOf(language: string): Format {
  let format = made.get(language)
  if (!format) made.set(language, (format = make(localeOf(language))))
  return format
}

export function useFormat(): Format {
  return formatOf(useTranslation().i18n.language)
}

const byteUnits = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"]
const spans: [Intl.RelativeTimeFormatUnit, number][] = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3_600], ["minute", 60]]

function make(locale: string): Format {
  const number = new Intl.NumberFormat(locale)
  const dateTime = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" })
  const clock = new Intl.DateTimeFormat(locale, { timeStyle: "medium" })
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" })
  const unit = (value: number, name: string, digits: number, unitDisplay: "short" | "long" = "short") =>
    new Intl.NumberFormat(locale, { style: "unit", unit: name, unitDisplay, maximumFractionDigits: digits }).format(value)
  return {
    number: (n) => number.format(n),
    bytes: (n) => {
      const i = Math.min(Math.floor(Math.log10(Math.max(n, 1)) / 3), byteUnits.length - 1)
      return unit(n / 1000 ** i, byteUnits[i]!, i === 0 ? 0 : 1, i === 0 ? "long" : "short") // the short form has no plural: "8 byte"
    },
    duration: (ms) => {
      if (ms < 1000) return unit(Math.round(ms), "millisecond", 0)
      if (ms < 60_000) return unit(ms / 1000, "second", 1)
      const s = Math.round(ms / 1000)
      if (s < 3600) return `${unit(Math.floor(s / 60), "minute", 0)} ${unit(s % 60, "second", 0)}`
      return `${unit(Math.floor(s / 3600), "hour", 0)} ${unit(Math.floor((s % 3600) / 60), "minute", 0)}`
    },
    dateTime: (iso) => dateTime.format(new Date(iso)),
    clock: (iso) => clock.format(new Date(iso)),
    ago: (iso, now = Date.now()) => {
      const s = (new Date(iso).getTime() - now) / 1000
      for (const [name, length] of spans) if (Math.abs(s) >= length) return relative.format(Math.trunc(s / length), name)
      return relative.format(0, "second")
    },
  }
}
