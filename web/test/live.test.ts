// A page over a bad line, against two replicas that die in turn: in the end it shows what the log says, nothing
// twice and nothing less. CAIRN_CUTS is how often the line may break by itself (40 unless given), CAIRN_SEED where.

import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { BrowserContext, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { accessible, fits, open, server, shoot, useBrowser } from "./browser"
import { Forwarder } from "./forwarder"
import { binary, freePort, until } from "./setup"

const cuts = Number(process.env.CAIRN_CUTS ?? 40)
const seed = Number(process.env.CAIRN_SEED ?? 1)

function seeded(state: number): () => number {
  return () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648
}
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))

/** Two replicas on one log, and one who has signed in there. */
class Installation {
  readonly data = mkdtempSync(join(tmpdir(), "cairn-live-"))
  up: ChildProcess | null = null
  ports: number[] = []
  cookie = { name: "", value: "" }
  space = { id: "", name: "" }
  agent = ""

  async start(): Promise<void> {
    const port = await freePort()
    this.ports = [port, port + 1]
    this.up = spawn(binary, ["up", "--data", this.data, "--listen", `127.0.0.1:${port}`, "--replicas", "2"], {
      stdio: ["ignore", "pipe", "pipe"],
    })
    const told = await until(this.up, /^Login: .*$/m)
    const [, email, code] = /^Login: (\S+) (\S+)$/m.exec(told)!
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ email, code }),
    })
    const [name = "", value = ""] = answer.headers.getSetCookie()[0]!.split(";")[0]!.split("=")
    this.cookie = { name, value }
    const spaces = (await this.ask("GET", "/spaces")) as { items: { space_id: string; slug: string }[] }
    this.space = { id: spaces.items[0]!.space_id, name: spaces.items[0]!.slug }
    const agents = (await this.ask("GET", `/spaces/${this.space.id}/agents`)) as { items: { agent_id: string }[] }
    this.agent = agents.items[0]!.agent_id
  }

  /** Asks whichever replica answers. */
  async ask(method: string, path: string, body?: object): Promise<unknown> {
    for (let i = 0; ; i++) {
      try {
        const headers = { Cookie: `${this.cookie.name}=${this.cookie.value}`, "Content-Type": "application/json" }
        const answer = await fetch(`http://127.0.0.1:${this.ports[i % 2]}/api/v1${path}`, {
          method,
          headers,
          body: body && JSON.stringify(body),
          signal: AbortSignal.timeout(4000),
        })
        if (answer.status >= 500) throw new Error(await answer.text())
        if (!answer.ok) throw new Refused(`${method} ${path}: ${await answer.text()}`)
        return await answer.json()
      } catch (thrown) {
        if (thrown instanceof Refused || i > 60) throw thrown
        await pause(250)
      }
    }
  }

  async converse(title: string): Promise<string> {
    const opened = (await this.ask("POST", `/spaces/${this.space.id}/conversations`, { agent_id: this.agent, title })) as {
      conversation_id: string
    }
    return opened.conversation_id
  }

  /** The positions of all events of a conversation and of its runs, but for its opening. */
  async positions(conversation: string): Promise<number[]> {
    const streams = new Set([`conversation/${conversation}`])
    const found: number[] = []
    for (let after = 0, more = true; more;) {
      const page = (await this.ask("GET", `/spaces/${this.space.id}/events?after=${after}&limit=500`)) as {
        events: { position: number; stream: string; kind: string; data: { conversation?: string } }[]
        next_after: number
        more: boolean
      }
      for (const e of page.events) {
        if (e.kind === "run.queued" && e.data.conversation === conversation) streams.add(e.stream)
        if (streams.has(e.stream) && e.kind !== "conversation.opened") found.push(e.position)
      }
      after = page.next_after
      more = page.more
    }
    return found
  }

  async idle(conversation: string): Promise<boolean> {
    const c = (await this.ask("GET", `/conversations/${conversation}`)) as { active_run_id: string | null; waiting: number; turns: number }
    return c.active_run_id === null && c.waiting === 0 && c.turns > 0
  }

  /** The process of the replica on a port. */
  pid(port: number): number | null {
    for (const name of readdirSync("/proc")) {
      if (!/^\d+$/.test(name)) continue
      try {
        const line = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").join(" ")
        if (line.includes(this.data) && line.includes(`--listen 127.0.0.1:${port} `) && line.includes(" server ")) return Number(name)
      } catch {
        // It ended meanwhile.
      }
    }
    return null
  }

  signal(port: number, signal: NodeJS.Signals): void {
    const pid = this.pid(port)
    if (pid !== null) process.kill(pid, signal)
  }

  async answers(port: number): Promise<void> {
    for (let i = 0; i < 240; i++) {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(2000) }).catch(() => null)
      if (answer?.ok) return
      await pause(250)
    }
    throw new Error(`the replica on ${port} did not come back`)
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.up!.once("exit", done))
    this.up!.kill("SIGINT")
    await ended
    rmSync(this.data, { recursive: true, force: true })
  }
}

class Refused extends Error {}

/** The positions that the page shows, from its top to its end: each row says which events are in it. */
async function shown(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const numbers = (text: string | null) => (text ?? "").split(" ").filter(Boolean).map(Number)
    const thread = document.querySelector("[data-thread]")!
    const scroller = document.querySelector<HTMLElement>("[data-rows]")!
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))
    const rows = new Map<string, number[]>()
    scroller.scrollTop = 0
    for (let last = -1, still = 0; still < 5;) {
      await frame()
      for (const row of document.querySelectorAll("[data-key]"))
        rows.set(row.getAttribute("data-key")!, numbers(row.getAttribute("data-positions")))
      still = scroller.scrollTop === last ? still + 1 : 0
      last = scroller.scrollTop
      scroller.scrollTop += scroller.clientHeight * 0.6
    }
    if (rows.size !== Number(scroller.dataset.rows)) throw new Error(`${rows.size} rows were seen of ${scroller.dataset.rows}`)
    return [...numbers(thread.getAttribute("data-positions")), ...[...rows.values()].flat()]
  })
}

async function enter(installation: Installation, url: string, conversation: string) {
  const opened = await open({ height: 700 })
  await signIn(opened.context, installation)
  let navigations = 0
  opened.page.on("request", (request) => void (request.isNavigationRequest() && navigations++))
  await opened.page.goto(`${url}/s/${installation.space.name}/conversations/${conversation}`)
  await opened.page.locator("[data-thread=ready]").waitFor()
  // A connection that breaks is what this is about; the browser says it in the console.
  const errors = () => opened.errors.filter((e) => !/^WebSocket connection to .* failed|net::ERR_/.test(e))
  return { ...opened, errors, navigations: () => navigations }
}

const signIn = (context: BrowserContext, { cookie }: Installation) =>
  context.addCookies([{ ...cookie, domain: "127.0.0.1", path: "/", httpOnly: true, sameSite: "Lax" }])

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Write a message" }).fill(text)
  await page.keyboard.press("Enter")
}

/** Who reads further up is not moved by what comes; and whoever wants to, goes back to the end. */
async function staysInPlace(page: Page): Promise<void> {
  const rows = page.locator("[data-rows]")
  const count = async () => Number(await rows.getAttribute("data-rows"))
  await expect.poll(count, { timeout: 60_000 }).toBeGreaterThan(20)
  await rows.evaluate((e) => (e.scrollTop = 40))
  const read = page.getByText("Step 1 of 26").first()
  const before = (await read.boundingBox())!.y
  const seen = await count()
  await expect.poll(count, { timeout: 60_000 }).toBeGreaterThan(seen + 8)
  expect((await read.boundingBox())!.y).toBe(before)
  await page.getByRole("button", { name: /new$/ }).click()
  const fromEnd = () => rows.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight)
  await expect.poll(fromEnd).toBeLessThan(48)
  await expect.poll(count, { timeout: 60_000 }).toBeGreaterThan(seen + 14)
  await expect.poll(fromEnd, { interval: 20 }).toBeLessThan(48) // it goes along
}

const steps = (from: number, n: number) => Array.from({ length: n }, (_, i) => `$ seq ${from + i} ${from + i + 3}`).join("\n")

describe.skipIf(!server)("a conversation that goes on", () => {
  useBrowser()
  const installation = new Installation()
  beforeAll(() => installation.start())
  afterAll(() => installation.stop())

  it("shows messages, calls and answers as they come, and the same after the page is loaded again", async () => {
    const conversation = await installation.converse("As it happens")
    const { page, errors } = await enter(installation, `http://127.0.0.1:${installation.ports[0]}`, conversation)
    await page.getByRole("heading", { name: "Nothing was said yet" }).waitFor()
    await accessible(page, "an empty conversation")
    await page.getByRole("textbox", { name: "Write a message" }).fill("kept")
    await page.reload()
    await expect.poll(() => page.getByRole("textbox", { name: "Write a message" }).inputValue()).toBe("kept")
    await say(page, '$ seq 1 100\n$ false\n$ sleep 8\nplain words\n$ echo "**bold** <img src=x onerror=alert(1)>"')
    await page.getByText("Step 3 of 4").waitFor()
    await say(page, "$ echo second")
    await page.getByText("Waits for its turn").waitFor()
    await page.reload() // in the middle of it
    await page.getByText("Done, 1 of 1 steps").waitFor({ timeout: 60_000 })
    await expect.poll(() => installation.idle(conversation), { timeout: 60_000 }).toBe(true)
    const rows = page.locator("[data-key]")
    const keys = await rows.evaluateAll((all) => all.map((row) => row.getAttribute("data-key")))
    expect(new Set(keys).size).toBe(keys.length)
    expect(await page.getByText("Step 3 of 4").count(), "nothing is repeated").toBe(1)
    expect(await page.locator("img").count(), "nothing of an answer becomes markup").toBe(0)
    expect(await page.getByText("exit 1").count()).toBe(1)
    await page.getByText("Show the middle: all 101 lines").click()
    await page.getByText("Show less").waitFor()
    await accessible(page, "a conversation")
    await shoot(page, "conversation")
    await page.setViewportSize({ width: 360, height: 740 })
    await fits(page, "a conversation at 360")
    await shoot(page, "conversation-360")
    expect(errors()).toEqual([])
  })

  it(`loses and repeats nothing over up to ${cuts} cuts and the death of each replica`, { timeout: 900_000 }, async () => {
    const conversation = await installation.converse("A bad line")
    const [a, b] = installation.ports as [number, number]
    const line = new Forwarder(a, seeded(seed))
    const { page, errors, navigations } = await enter(installation, `http://127.0.0.1:${await line.listen()}`, conversation)
    let last = 0
    const sayMore = async (messages: number) => {
      for (let i = 0; i < messages; i++, last += 40) await say(page, steps(last, 26))
    }
    await sayMore(2)
    await page.getByText("Step 2 of 26").first().waitFor()
    await staysInPlace(page)
    line.cutsLeft = cuts

    // The replica that the page is on dies; the line is dead for a while, and then leads to the other.
    const banner = page.getByText("The connection is lost").waitFor()
    installation.signal(a, "SIGKILL")
    line.target = null
    line.breakAll()
    await sayMore(1) // written while nobody answers: posted once
    await banner
    await shoot(page, "connection-lost")
    line.target = b
    await page.getByText("The connection is lost").waitFor({ state: "hidden" })
    await installation.answers(a)

    // The other one stands still for 5 s, and then goes on as if nothing had been.
    installation.signal(b, "SIGSTOP")
    await pause(5000)
    installation.signal(b, "SIGCONT")
    await sayMore(1)
    line.target = a
    await pause(2000)
    installation.signal(b, "SIGKILL")
    line.breakAll()
    await installation.answers(b)
    await sayMore(2)

    await expect.poll(() => installation.idle(conversation), { timeout: 600_000, interval: 500 }).toBe(true)
    line.cutsLeft = 0 // nothing is left to be cut
    expect(line.cuts).toBeGreaterThan(Math.min(cuts, 10) - 1)
    const want = await installation.positions(conversation)
    const byNumber = (x: number, y: number) => x - y
    await expect.poll(async () => (await shown(page)).length, { timeout: 60_000, interval: 1000 }).toBe(want.length)
    expect((await shown(page)).sort(byNumber)).toEqual(want.sort(byNumber))
    expect(want.length).toBeGreaterThan(400)
    expect(await page.getByText("Being sent").count()).toBe(0)
    expect(navigations()).toBe(1)
    expect(errors()).toEqual([])
    console.log(`${want.length} events, ${line.cuts} cuts`)
    line.close()
  })
})
