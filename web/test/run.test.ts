// The page of a run: review of its changes, links to its events, and ten thousand rows.

import type { Page } from "playwright-core"
import { beforeAll, describe, expect, it } from "vitest"
import { accessible, ask, ended, open, server, shoot, signIn, texts, useBrowser } from "./browser"

const t = texts("en")
type Storage = Awaited<ReturnType<Awaited<ReturnType<typeof open>>["context"]["storageState"]>>
type Event = { position: number; version: number; kind: string; stream: string; schema: number; at: string; actor: string; data: unknown }
let world: { run: string; events: Event[]; storage: Storage }

async function build() {
  const { page, context } = await open()
  await signIn(page)
  const { space_id } = (await ask<{ items: { space_id: string }[] }>(page, "GET", "/spaces")).items[0]!
  const { agent_id } = await ask<{ agent_id: string }>(page, "POST", `/spaces/${space_id}/agents`, { name: "Writer", model: "demo" })
  const prompt = "$ seq 1 3000 > long.txt\n$ mkdir -p a/b && printf 'one\\ntwo\\n' > a/b/first.md\n$ head -c 4096 /dev/zero > zero.bin\nwrite NOTE.md: hello"
  const { run_id } = await ask<{ run_id: string }>(page, "POST", `/spaces/${space_id}/tasks`, { agent_id, title: "Write some files", prompt })
  await ended(page, run_id)
  const { events } = await ask<{ events: Event[] }>(page, "GET", `/runs/${run_id}/events?after=0&limit=500`)
  const storage = await context.storageState()
  await context.close()
  return { run: run_id, events, storage }
}

/** The same run with so many more events that there are ten thousand: what the server would answer, page by page. */
async function withMany(page: Page, count: number) {
  const [first] = world.events
  const all = Array.from({ length: count }, (_, i): Event => world.events[i] ?? { ...first!, kind: "run.noted", position: world.events.at(-1)!.position + i, version: i + 1, data: { number: i } })
  await page.route(`**/api/v1/runs/${world.run}/events*`, (route) => {
    const after = Number(new URL(route.request().url()).searchParams.get("after"))
    const events = all.filter((e) => e.position > after).slice(0, 500)
    return route.fulfill({ json: { log_id: "", incarnation: 1, events, next_after: events.at(-1)?.position ?? after, more: events.length === 500 } })
  })
}

describe.skipIf(!server)("the page of a run", () => {
  useBrowser()
  beforeAll(async () => {
    if (server) world = await build()
  })

  it("leads through the changed files and their diffs by keyboard", async () => {
    const { page, context, errors } = await open({ storage: world.storage })
    await page.goto(`/runs/${world.run}?tab=changes`)
    const files = page.getByRole("list", { name: t("run.changes.files") })
    await files.getByRole("button", { name: /first\.md/ }).waitFor()
    await page.keyboard.press("j")
    await page.waitForURL(/path=NOTE\.md/)
    await page.getByRole("region", { name: t("run.changes.diff_of", { path: "NOTE.md" }) }).getByText("hello").waitFor()
    await page.keyboard.press("j")
    await page.waitForURL(/path=a%2Fb%2Ffirst\.md/)
    await accessible(page, "a diff")
    await page.keyboard.press("k")
    await page.waitForURL(/path=NOTE\.md/)
    await files.getByRole("button", { name: /zero\.bin/ }).click()
    await page.getByText(t("run.changes.binary")).waitFor()
    await files.getByRole("button", { name: /long\.txt/ }).click()
    const diff = page.getByRole("region", { name: t("run.changes.diff_of", { path: "long.txt" }) })
    await diff.waitFor()
    expect(await diff.getAttribute("data-lines")).toBe("3001")
    expect(await diff.locator("> div > div").count()).toBeLessThan(150)
    await page.getByRole("searchbox", { name: t("run.changes.filter") }).fill("FIRST")
    await files.getByRole("button", { name: /NOTE\.md/ }).waitFor({ state: "detached" })
    await page.keyboard.press("Tab")
    await page.reload()
    await files.getByRole("button", { name: /first\.md/ }).waitFor()
    expect(await files.getByRole("button").count()).toBe(1)
    await context.close()
    expect(errors).toEqual([])
  })

  it("opens at the event that a link names, marked and unfolded", async () => {
    const { page, context, errors } = await open({ storage: world.storage, height: 500 })
    const { position, kind } = world.events.at(-2)!
    await page.goto(`/runs/${world.run}?tab=events&position=${position}&event=${position}`)
    const row = page.locator(`[data-position="${position}"]`)
    await row.waitFor()
    await row.locator("pre").getByText(`"kind": "${kind}"`).waitFor()
    const [at, window] = [await row.boundingBox(), page.viewportSize()!]
    expect(at!.y).toBeLessThan(window.height)
    await row.getByRole("button", { expanded: true }).focus()
    await page.keyboard.press("Escape")
    await row.locator("pre").waitFor({ state: "detached" })
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")
    await page.waitForURL(new RegExp(`event=(%22)?${world.events.at(-3)!.position}`))
    await page.getByRole("tab", { name: t("run.tab.events") }).focus()
    await page.keyboard.press("ArrowLeft")
    await page.getByRole("table", { name: t("run.boundary.controls") }).waitFor()
    expect(new URL(page.url()).searchParams.get("tab")).toBe("boundary")
    await context.close()
    expect(errors).toEqual([])
  })

  it("scrolls through 10,000 events with few rows in the page", async () => {
    const { page, context, errors } = await open({ storage: world.storage })
    await withMany(page, 10_000)
    await page.goto(`/runs/${world.run}?tab=events`)
    const list = page.locator('[data-rows="10000"]')
    await list.waitFor()
    const told = await list.evaluate(async (scroller) => {
      const frames: number[] = []
      let most = 0
      let last = performance.now()
      for (let i = 0; i < 180; i++) {
        scroller.scrollTop += i < 120 ? 200 : 4000
        const now = await new Promise<number>(requestAnimationFrame)
        frames.push(now - last)
        last = now
        most = Math.max(most, scroller.querySelectorAll("li").length)
      }
      return { most, slow: frames.filter((f) => f > 50).length, longest: Math.max(...frames) }
    })
    console.log(`10,000 events: at most ${told.most} rows in the page, ${told.slow} of 180 frames over 50 ms, the longest ${told.longest.toFixed(0)} ms`)
    expect(told.most).toBeLessThan(80)
    await list.evaluate((scroller) => scroller.scrollTo(0, scroller.scrollHeight))
    await page.locator('[data-index="9999"]').waitFor()
    await shoot(page, "run-events-many")
    await context.close()
    expect(errors).toEqual([])
  })
})
