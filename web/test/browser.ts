import { mkdirSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { type Browser, type BrowserContext, chromium as engine, type Page } from "playwright-core"
import { afterAll, beforeAll, expect, inject } from "vitest"
import { chromium } from "./setup"

export const server = inject("server")

/** The texts of a language, as the pages show them. */
export type Language = "en" | "zh"

let browser: Browser

/** Call in a test file: one browser for its tests. */
export function useBrowser() {
  beforeAll(async () => {
    if (server) browser = await engine.launch({ executablePath: chromium, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] })
  })
  afterAll(() => browser?.close())
}

type Look = { language?: Language; theme?: "light" | "dark"; width?: number; height?: number; storage?: Awaited<ReturnType<BrowserContext["storageState"]>> }

/** A page in a context of its own. What the browser complains about is collected in errors. */
export async function open({ language = "en", theme = "light", width = 1280, height = 800, storage }: Look = {}) {
  const context = await browser.newContext({
    baseURL: server!.url,
    locale: language === "zh" ? "zh-CN" : "en-GB",
    colorScheme: theme,
    viewport: { width, height },
    storageState: storage,
  })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const errors: string[] = []
  page.on("console", (message) => {
    // A refusal that the page handles is no fault of the page: the browser reports every 4xx here.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) errors.push(message.text())
  })
  page.on("pageerror", (error) => errors.push(String(error)))
  return { page, context, errors }
}

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js")

/** Holds the page against the rules of axe; none may be broken. */
export async function accessible(page: Page, where: string) {
  await page.evaluate((await import("node:fs")).readFileSync(axe, "utf8"))
  const broken = await page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: { run: (o: unknown) => Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }> } }).axe.run({ resultTypes: ["violations"] })
    return violations.map((v) => ({ id: v.id, at: v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 200)} ${n.failureSummary ?? ""}`) }))
  })
  expect(broken, where).toEqual([])
}

/** Nothing may be wider than the window. */
export async function fits(page: Page, where: string) {
  const wide = await page.evaluate(() => {
    const most = document.documentElement.clientWidth
    const scrolls = (e: Element | null): boolean => e !== null && e.tagName !== "MAIN" && (["auto", "scroll"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement))
    const out = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > most + 1 && e.getClientRects().length > 0 && !scrolls(e.parentElement) && !e.closest(".sr-only, .skip"))
    return { page: document.documentElement.scrollWidth > most, out: out.slice(0, 3).map((e) => e.outerHTML.slice(0, 160)) }
  })
  expect(wide, where).toEqual({ page: false, out: [] })
}

const shots = process.env.CAIRN_SHOTS ?? fileURLToPath(new URL("../.build/shots/", import.meta.url))

/** A picture of what the page shows, for people to look at. */
export async function shoot(page: Page, name: string) {
  mkdirSync(shots, { recursive: true })
  await page.screenshot({ path: `${shots}/${name}.png` })
}
