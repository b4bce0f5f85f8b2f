import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    server: { url: string; email: string; code: string; data: string } | null
  }
}

export const binary = fileURLToPath(new URL("../../bin/cairn", import.meta.url))
export const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium"

/** Starts a fresh installation for all browser tests: the real binary on a database of its own. */
export default async function setup(project: TestProject) {
  const missing = [
    [existsSync(binary), `${binary} is not built: make build`],
    [existsSync(chromium), `no Chromium at ${chromium}: install it, or name one with CHROMIUM`],
    [process.getuid?.() === 0, "running agents needs root"],
  ].find(([there]) => !there)
  if (missing) {
    if (process.env.CI === "true") throw new Error(String(missing[1]))
    console.warn(`skipped: ${missing[1]}`)
    project.provide("server", null)
    return () => {}
  }
  const data = mkdtempSync(join(tmpdir(), "cairn-portal-"))
  const port = await freePort()
  const up = spawn(binary, ["up", "--data", data, "--listen", `127.0.0.1:${port}`], { stdio: ["ignore", "pipe", "pipe"] })
  try {
    const told = await until(up, /^Login: .*$/m)
    const [, email = "", code = ""] = /^Login: (\S+) (\S+)$/m.exec(told) ?? []
    const [, url = ""] = /^Portal: (\S+)$/m.exec(told) ?? []
    project.provide("server", { url, email, code, data })
  } catch (thrown) {
    up.kill("SIGKILL")
    throw thrown
  }
  return async () => {
    const ended = new Promise((resolve) => up.once("exit", resolve))
    up.kill("SIGINT")
    await ended
    rmSync(data, { recursive: true, force: true })
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject)
    probe.listen(0, "127.0.0.1", () => {
      const at = probe.address()
      probe.close(() => (at && typeof at === "object" ? resolve(at.port) : reject(new Error("no port"))))
    })
  })
}

/** What the process has said once it says what is waited for. */
export function until(child: ChildProcess, wanted: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let told = ""
    const hear = (text: Buffer) => {
      told += text.toString()
      if (wanted.test(told)) resolve(told)
    }
    child.stdout?.on("data", hear)
    child.stderr?.on("data", hear)
    child.once("exit", (code) => reject(new Error(`cairn up ended with ${code}:\n${told}`)))
    child.once("error", reject)
    setTimeout(() => reject(new Error(`cairn up did not start within a minute:\n${told}`)), 60_000).unref()
  })
}
