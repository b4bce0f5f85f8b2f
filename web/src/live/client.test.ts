// The client against a server that says what this test makes it say, over real sockets. Against Cairn itself it
// is tried in web/e2e.

import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { WebSocket as Socket, WebSocketServer } from "ws"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { LiveClient } from "./client"
import type { Cursor, Delta, LogEvent } from "./frame"
import type { Watcher } from "./topic"

const log = "00000000-0000-0000-0000-00000000000a"
const topic = "00000000-0000-0000-0000-000000000001"

class Peer {
  readonly server = new WebSocketServer({ port: 0, host: "127.0.0.1" })
  readonly orders: Record<string, unknown>[] = []
  readonly urls: string[] = []
  sockets = 0
  current: Socket | null = null
  hello: Record<string, unknown> | null = { type: "hello", protocol: 1, log_id: log, incarnation: 0, head: 10, silence_ms: 5000 }

  constructor() {
    this.server.on("connection", (socket, request) => {
      this.sockets++
      this.urls.push(request.url ?? "")
      this.current = socket
      socket.on("message", (m) => this.orders.push(JSON.parse(String(m)) as Record<string, unknown>))
      if (this.hello) this.send(this.hello)
    })
  }
  get url(): string {
    return `ws://127.0.0.1:${(this.server.address() as AddressInfo).port}/api/v1/live`
  }
  send(...frames: object[]): void {
    this.current!.send(JSON.stringify(frames))
  }
}

class Seen implements Watcher {
  positions: number[] = []
  words: string[] = []
  cursors: Cursor[] = []
  forgotten = 0
  over: string[] = []
  events = (events: LogEvent[]): void => void this.positions.push(...events.map((e) => e.position))
  delta = (d: Delta): void => void this.words.push(d.text)
  began = (c: Cursor): void => void this.cursors.push(c)
  forget = (): void => {
    this.forgotten++
    this.positions = []
  }
  ended = (code: string): void => void this.over.push(code)
}

const event = (position: number, of = topic) => ({
  type: "event",
  topic: of,
  position,
  stream: "conversation/1",
  version: position,
  kind: "conversation.message_posted",
  schema: 1,
  at: "",
  actor: "system",
  data: {},
})
const frame = (type: string, position: number) => ({ type, topic, position })

let peer: Peer
let client: LiveClient
let waits: number[]

async function until(what: () => unknown): Promise<void> {
  await expect.poll(what, { timeout: 4000, interval: 5 }).toBeTruthy()
}

beforeEach(async () => {
  peer = new Peer()
  await once(peer.server, "listening")
  waits = []
  client = new LiveClient({
    url: peer.url,
    open: (url) => new Socket(url) as unknown as WebSocket,
    random: () => 0.01,
    now: Date.now,
    offline: () => false,
  })
  client.connection.subscribe(() => {
    const c = client.connection.get()
    if (c.phase === "lost" && c.retryAt !== null) waits.push(c.retryAt - Date.now())
  })
})
afterEach(async () => {
  client.close()
  for (const socket of peer.server.clients) socket.terminate()
  await new Promise((done) => peer.server.close(done))
})

async function began(from: "start" | "head" | Cursor = "start"): Promise<Seen> {
  const seen = new Seen()
  client.watch(topic, from, seen)
  await until(() => peer.orders.length === 1)
  peer.send(frame("subscribed", Number(peer.orders[0]!.after)))
  return seen
}

describe("a page and its socket", () => {
  test("asks from the beginning, and no token is in the address", async () => {
    const seen = await began()
    peer.send(event(3), event(5), frame("live", 8))
    await until(() => seen.positions.length === 2)
    expect(peer.orders[0]).toEqual({ type: "subscribe", topic, after: 0 })
    expect(peer.urls).toEqual(["/api/v1/live"])
    expect(client.position.get()).toBe(10)
  })

  test("goes on where it was after the connection broke, each event once", async () => {
    const seen = await began()
    peer.send(event(3), event(5), frame("live", 5))
    await until(() => seen.positions.length === 2)
    peer.current!.terminate()
    await until(() => peer.orders.length === 2)
    expect(peer.orders[1]).toEqual({ type: "subscribe", topic, after: 5, log_id: log, incarnation: 0 })
    peer.send(frame("subscribed", 5), event(5), event(7), frame("live", 7))
    await until(() => seen.positions.length === 3)
    expect(seen.positions).toEqual([3, 5, 7])
    expect(seen.cursors).toHaveLength(1)
  })

  test("a ping moves topics that are live, and no other", async () => {
    const other = topic.replace(/1$/, "2")
    await began()
    client.watch(other, "start", new Seen())
    await until(() => peer.orders.length === 2)
    peer.send(frame("live", 4), { type: "subscribed", topic: other, position: 0 }, event(2, other), { type: "ping", position: 90 })
    await until(() => client.position.get() === 90)
    peer.current!.terminate()
    await until(() => peer.orders.length === 4)
    expect(peer.orders.slice(2).map((o) => [o.topic, o.after])).toEqual([
      [topic, 90],
      [other, 2],
    ])
  })

  test("from the head: says where it began, and that again only when all is forgotten", async () => {
    const seen = await began("head")
    await until(() => seen.cursors.length === 1)
    expect(seen.cursors[0]).toEqual({ logId: log, incarnation: 0, position: 10 })
    peer.hello = { ...peer.hello, incarnation: 1, head: 4 }
    peer.current!.terminate()
    await until(() => peer.orders.length === 2)
    expect(seen.forgotten).toBe(1)
    expect(peer.orders[1]).toEqual({ type: "subscribe", topic, after: 4, log_id: log, incarnation: 1 })
    peer.send(frame("subscribed", 4))
    await until(() => seen.cursors.length === 2)
  })

  test("reads too slowly: asks again after where the server stopped", async () => {
    const seen = await began()
    peer.send(event(3), frame("live", 3), frame("resync", 3))
    await until(() => peer.orders.length === 2)
    peer.send(event(4)) // not before it is subscribed again
    peer.send(frame("subscribed", 3), event(4), event(6))
    await until(() => seen.positions.length === 3)
    expect(peer.orders[1]).toMatchObject({ after: 3 })
    expect(seen.positions).toEqual([3, 4, 6])
  })

  test("a topic that ended is not asked for again", async () => {
    const seen = await began()
    peer.send({ ...frame("ended", 3), code: "access_ended", message: "m" }, event(4))
    await until(() => seen.over.length === 1)
    peer.current!.terminate()
    await until(() => peer.sockets === 2 && client.connection.get().phase === "open")
    expect([peer.orders.length, seen.positions]).toEqual([1, []])
  })

  test("passes over frames that it does not know, and words come through", async () => {
    const seen = await began()
    peer.send(
      { type: "song", topic },
      { type: "delta", topic, run: "r", epoch: 1, step: 1, attempt: 1, from: 0, seq: 0, text: "la" },
      event(2),
    )
    await until(() => seen.positions.length === 1)
    expect(seen.words).toEqual(["la"])
  })

  test("two silences are a dead connection", async () => {
    peer.hello = { ...peer.hello, silence_ms: 40 }
    const seen = await began()
    peer.send(event(3))
    await until(() => peer.orders.length === 2)
    expect([peer.orders[1]!.after, seen.positions]).toEqual([3, [3]])
    expect(waits).toHaveLength(1)
  })

  test("a topic given up is unsubscribed, and may be watched again", async () => {
    const stop = client.watch(topic, "start", new Seen())
    stop()
    const again = new Seen()
    client.watch(topic, "start", again)
    expect(() => client.watch(topic, "start", new Seen())).toThrow("watched already")
    await until(() => peer.orders.length === 1)
    peer.send(frame("subscribed", 0), event(1))
    await until(() => again.positions.length === 1)
  })
})

describe("close codes", () => {
  const close = (code: number, reason: object | string = "") =>
    peer.current!.close(code, typeof reason === "string" ? reason : JSON.stringify(reason))

  test.each([4401, 4403])("%i asks to sign in, and does not come back by itself", async (code) => {
    await began()
    close(code, { code: "session_ended" })
    await until(() => client.connection.get().phase === "signed_out")
    client.retryNow()
    expect(peer.sockets).toBe(1)
    client.signedIn()
    await until(() => peer.orders.length === 2)
  })

  test.each([4400, 1009])("%i is a fault of this client and is not repeated", async (code) => {
    await began()
    close(code, code === 1009 ? "too long" : { code: "bad_message", message: "too long" })
    await until(() => client.connection.get().phase === "faulted")
    expect(client.connection.get()).toEqual({ phase: "faulted", message: "too long" })
    client.retryNow()
    expect(peer.sockets).toBe(1)
  })

  test("4409 forgets and begins anew", async () => {
    const seen = await began()
    peer.send(event(3), frame("live", 3))
    await until(() => seen.positions.length === 1)
    close(4409, { code: "start_over" })
    await until(() => peer.orders.length === 2)
    expect([seen.forgotten, peer.orders[1]]).toEqual([1, { type: "subscribe", topic, after: 0 }])
  })

  test.each([4408, 4429, 4503, 4500])("%i waits as long as the server says", async (code) => {
    await began()
    close(code, { code: "x", retry_ms: 120 })
    await until(() => peer.orders.length === 2)
    expect(waits[0]).toBeGreaterThan(90)
    expect(waits[0]).toBeLessThanOrEqual(120)
  })

  test("4500 doubles", async () => {
    peer.hello = null
    client.watch(topic, "start", new Seen())
    for (let i = 1; i <= 3; i++) {
      await until(() => peer.sockets === i)
      close(4500, { code: "unavailable", retry_ms: 30 })
    }
    await until(() => waits.length === 3)
    expect(waits.map((w) => Math.round(w / 10))).toEqual([3, 6, 12])
  })

  test("without a code the waits double, and begin anew once something was heard", async () => {
    peer.hello = null
    client.watch(topic, "start", new Seen())
    for (let i = 1; i <= 3; i++) {
      await until(() => peer.sockets === i)
      peer.current!.terminate()
    }
    await until(() => waits.length === 3)
    expect(waits.map((w) => Math.round(w / 10))).toEqual([1, 2, 4])
    await until(() => peer.sockets === 4)
    peer.hello = { type: "hello", protocol: 1, log_id: log, incarnation: 0, head: 10, silence_ms: 5000 }
    peer.send(peer.hello)
    await until(() => peer.orders.length === 1)
    peer.send(frame("subscribed", 0), event(1))
    await until(() => client.connection.get().phase === "open" && client.position.get() === 10)
    peer.current!.terminate()
    await until(() => waits.length === 4)
    expect(Math.round(waits[3]! / 10)).toBe(1)
  })
})
