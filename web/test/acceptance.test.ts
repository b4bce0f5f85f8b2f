// What somebody does on the first day, in both languages: sign in, upload a folder, start a conversation with the demo model
// on it, and have what it changed recorded.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { accessible, ask, ended, newCode, open, server, shoot, texts, useBrowser } from "./browser"

/** A folder to upload: nested, empty files, names of several scripts. */
function sample(name: string): string {
  const root = join(mkdtempSync(join(tmpdir(), "cairn-sample-")), name)
  mkdirSync(join(root, "src"), { recursive: true })
  writeFileSync(join(root, "README.md"), "# Sample\n")
  writeFileSync(join(root, "src", "main.txt"), "one\ntwo\n")
  writeFileSync(join(root, "src", "说明.txt"), "你好\n")
  writeFileSync(join(root, "empty"), "")
  return root
}

describe.skipIf(!server)("the first day", () => {
  useBrowser()

  for (const { language, theme } of [
    { language: "en", theme: "light" },
    { language: "zh", theme: "dark" },
  ] as const) {
    it(`in ${language}`, { timeout: 300_000 }, async () => {
      const t = texts(language)
      const name = `sample-${language}`
      const folder = sample(name)
      const picture = (what: string) => shoot(page, `day-${language}-${what}`)
      const { page, context, errors } = await open({ language, theme })
      await page.goto("/")
      await page.getByRole("button", { name: t("account.login.with_code") }).click()
      await page.getByLabel(t("account.email")).fill(server!.email)
      await page.getByLabel(t("account.code"), { exact: true }).fill(newCode())
      await page.getByRole("button", { name: t("account.login.submit"), exact: true }).click()
      const later = page.getByRole("button", { name: t("account.first.later") })
      const places = page.getByRole("navigation", { name: t("shell.places") })
      await later.or(places).waitFor()
      if (await later.isVisible()) await later.click()

      await places.getByRole("link", { name: t("shell.place.files") }).click()
      await page.locator("input[webkitdirectory]").setInputFiles(folder)
      await page.getByRole("link", { name, exact: true }).click()
      await page.getByRole("link", { name: "src", exact: true }).click()
      await page.getByRole("link", { name: "说明.txt", exact: true }).waitFor()
      await picture("files")

      await places.getByRole("link", { name: t("shell.place.conversations") }).click()
      await page.getByRole("button", { name: t("conversation.list.create") }).click()
      const dialog = page.getByRole("dialog", { name: t("conversation.list.create") })
      const agent = dialog.getByLabel(t("agent.one")).locator("option", { hasText: "local" })
      await dialog.getByLabel(t("agent.one")).selectOption((await agent.getAttribute("value"))!)
      const option = dialog.getByLabel(t("file.source.label")).locator("option", { hasText: name })
      await option.waitFor({ state: "attached" })
      await dialog.getByLabel(t("file.source.label")).selectOption((await option.getAttribute("value"))!)
      await dialog.getByLabel(t("conversation.list.message")).fill(`$ ls -R\n$ cat src/main.txt\nwrite NOTE.md: ${name} was read`)
      await picture("new")
      await dialog.getByRole("button", { name: t("conversation.list.start") }).click()
      await page.waitForURL(/\/conversations\/[0-9a-f-]{36}$/)
      const id = page.url().split("/").at(-1)!
      const { items } = await ask<{ items: { run_id: string }[] }>(page, "GET", `/conversations/${id}/messages`)
      await picture("watching")
      await ended(page, items[0]!.run_id)
      await picture("answered")
      await accessible(page, "conversation")
      const run = await ask<{ state: string; answer: string }>(page, "GET", `/runs/${items[0]!.run_id}`)
      expect(run.answer).toContain("3 of 3")
      const changes = await ask<{ state: string; items: { path: string; change: string }[] }>(page, "GET", `/runs/${items[0]!.run_id}/changes`)
      expect(changes.items.map((i) => `${i.change} ${i.path}`)).toEqual(["added NOTE.md"])
      rmSync(folder, { recursive: true })
      await context.close()
      expect(errors).toEqual([])
    })
  }
})
