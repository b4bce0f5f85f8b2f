// Every page, in both themes and at 360 pixels: no rule of axe broken, nothing too wide, no complaint of the browser.

import type { Page } from "playwright-core"
import { beforeAll, describe, expect, it } from "vitest"
import { accessible, ask, ended, fits, open, server, shoot, signIn, texts, useBrowser } from "./browser"

type World = { space: string; agent: string; conversation: string; task: string; run: string; storage: Awaited<ReturnType<Awaited<ReturnType<typeof open>>["context"]["storageState"]>> }

let world: World

/** Something to show on every page. */
async function build(): Promise<World> {
  const { page, context } = await open()
  await signIn(page)
  const { items: spaces } = await ask<{ items: { space_id: string; slug: string }[] }>(page, "GET", "/spaces")
  const { space_id, slug } = spaces[0]!
  const { agent_id } = await ask<{ agent_id: string }>(page, "POST", `/spaces/${space_id}/agents`, { name: "Reviewer with a name that is rather long", model: "demo", instructions: "Read first.\nThen say what is wrong.\nBe short." })
  await ask(page, "PATCH", `/agents/${agent_id}`, { instructions: "Read first.\nSay what is wrong, and where.\nBe short.", tools: ["shell", "write", "read", "grep"], limits: { model_calls: 20 } })
  const { conversation_id } = await ask<{ conversation_id: string }>(page, "POST", `/spaces/${space_id}/conversations`, { agent_id, title: "Find out why the nightly build fails on machines with two cores" })
  const task = await ask<{ task_id: string; run_id: string }>(page, "POST", `/spaces/${space_id}/tasks`, { agent_id, title: "Tidy the changelog", prompt: "$ uname -s\nwrite NOTE.md: tidy" })
  const upload = await page.request.post(`/api/v1/spaces/${space_id}/files`, { multipart: { file: { name: "docs/guide/start.md", mimeType: "text/markdown", buffer: Buffer.from("# Start\n") } } })
  expect(upload.status()).toBe(201)
  await ended(page, task.run_id)
  const storage = await context.storageState()
  await context.close()
  return { space: slug, agent: agent_id, conversation: conversation_id, task: task.task_id, run: task.run_id, storage }
}

/** The addresses of all pages, and what has to be there before it is looked at. */
const pages = (w: World): [name: string, path: string, there: (page: Page) => Promise<unknown>][] => [
  ["conversations", `/s/${w.space}/conversations`, (p) => p.getByText("Find out why").waitFor()],
  ["conversation-new", `/s/${w.space}/conversations?new=true`, (p) => p.locator("dialog[open] textarea").waitFor()],
  ["tasks", `/s/${w.space}/tasks`, (p) => p.getByText("Tidy the changelog").waitFor()],
  ["tasks-none", `/s/${w.space}/tasks?state=failed&q=nothing`, (p) => p.getByRole("searchbox").waitFor()],
  ["task-new", `/s/${w.space}/tasks?new=true`, (p) => p.locator("dialog[open] textarea").waitFor()],
  ["task", `/s/${w.space}/tasks/${w.task}`, (p) => p.getByText("write NOTE.md").first().waitFor()],
  ["run", `/runs/${w.run}`, (p) => p.getByText("uname -s").first().waitFor()],
  ["run-timeline", `/runs/${w.run}?tab=timeline`, (p) => p.getByRole("row").nth(5).waitFor()],
  ["run-changes", `/runs/${w.run}?tab=changes&path=NOTE.md`, (p) => p.locator("#diff").getByText("tidy").waitFor()],
  ["run-boundary", `/runs/${w.run}?tab=boundary`, (p) => p.getByText("cgroup_kill").first().waitFor()],
  ["run-events", `/runs/${w.run}?tab=events`, (p) => p.locator("[data-position]").nth(4).waitFor()],
  ["agents", `/s/${w.space}/agents`, (p) => p.getByText("Reviewer with").waitFor()],
  ["agent", `/s/${w.space}/agents/${w.agent}`, (p) => p.getByText("Say what is wrong").waitFor()],
  ["agent-edit", `/s/${w.space}/agents/${w.agent}?edit=true`, (p) => p.locator("dialog[open] textarea").waitFor()],
  ["agent-compare", `/s/${w.space}/agents/${w.agent}?from=1&to=2`, (p) => p.locator("dialog[open]").getByText("Then say what is wrong.").waitFor()],
  ["files", `/s/${w.space}/files`, (p) => p.getByRole("link", { name: "docs", exact: true }).waitFor()],
  ["files-folder", `/s/${w.space}/files?folder=docs/guide`, (p) => p.getByRole("link", { name: "start.md", exact: true }).waitFor()],
  ["members", `/s/${w.space}/members`, (p) => p.getByRole("list").getByRole("button").first().waitFor()],
  ["account", "/account", (p) => p.getByRole("list").getByRole("listitem").first().waitFor()],
  ["missing", "/s/nowhere/tasks", (p) => p.getByRole("heading", { level: 2 }).waitFor()],
]

describe.skipIf(!server)("every page", () => {
  useBrowser()
  beforeAll(async () => {
    if (server) world = await build()
  })

  for (const look of [
    { language: "en", theme: "light", width: 1280 },
    { language: "zh", theme: "dark", width: 360 },
    { language: "zh", theme: "light", width: 1280 },
    { language: "en", theme: "dark", width: 360 },
  ] as const) {
    it(`in ${look.language}, ${look.theme}, at ${look.width} pixels`, { timeout: 300_000 }, async () => {
      const { page, context, errors } = await open({ ...look, height: 800, storage: world.storage })
      for (const [name, path, there] of pages(world)) {
        const where = `${name}-${look.language}-${look.theme}-${look.width}`
        await page.goto(path)
        await there(page)
        await accessible(page, where)
        await fits(page, where)
        await shoot(page, where)
      }
      await context.close()
      expect(errors).toEqual([])
    })
  }

  it("goes anywhere by keyboard", async () => {
    const t = texts("en")
    const { page, context, errors } = await open({ storage: world.storage })
    await page.goto(`/s/${world.space}/tasks`)
    await page.getByText("Tidy the changelog").waitFor()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.waitForURL(`**/tasks/${world.task}`)
    await page.keyboard.press("Control+k")
    await page.locator("dialog[open]").getByRole("combobox").fill("nightly")
    await page.getByRole("option", { name: /nightly build/ }).waitFor()
    await accessible(page, "palette with what the server found")
    await shoot(page, "palette")
    await page.keyboard.press("Enter")
    await page.waitForURL(`**/conversations/${world.conversation}`)
    await page.goBack()
    await page.waitForURL(`**/tasks/${world.task}`)
    await page.keyboard.press("?")
    await page.getByRole("dialog", { name: t("shell.help.title") }).waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("dialog", { name: t("shell.help.title") }).waitFor({ state: "hidden" })
    await context.close()
    expect(errors).toEqual([])
  })
})
