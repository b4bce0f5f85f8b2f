import { createServer, type Server, type Socket, connect } from "node:net"
import type { AddressInfo } from "node:net"

/** A line between a browser and one of several servers. It can be moved, closed, and it breaks when told to. */
export class Forwarder {
  readonly #server: Server
  readonly #pairs = new Set<{ near: Socket; far: Socket }>()
  readonly #random: () => number
  /** port that new connections lead to; null: nobody answers */
  target: number | null
  /** how many more WebSockets are to break by themselves */
  cutsLeft = 0
  cuts = 0

  constructor(target: number, random: () => number) {
    this.target = target
    this.#random = random
    this.#server = createServer((near) => this.#join(near))
  }

  listen(): Promise<number> {
    return new Promise((done) => this.#server.listen(0, "127.0.0.1", () => done((this.#server.address() as AddressInfo).port)))
  }

  close(): void {
    this.#server.close()
    this.breakAll()
  }

  breakAll(): void {
    for (const { near, far } of this.#pairs) {
      near.destroy()
      far.destroy()
    }
  }

  #join(near: Socket): void {
    if (this.target === null) return void near.destroy()
    const far = connect(this.target, "127.0.0.1")
    const pair = { near, far }
    this.#pairs.add(pair)
    const end = () => {
      near.destroy()
      far.destroy()
      this.#pairs.delete(pair)
    }
    for (const socket of [near, far]) socket.on("error", end).on("close", end)
    let left = Infinity
    near.on("data", (data) => {
      if (left === Infinity && this.cutsLeft > 0 && /^upgrade: websocket/im.test(data.toString("latin1"))) {
        this.cutsLeft--
        left = 1000 + Math.floor(this.#random() * 5_000)
      }
      far.write(data)
    })
    far.on("data", (data) => {
      if (data.length <= left) {
        left -= data.length
        near.write(data)
        return
      }
      // It breaks in the middle of what is being sent.
      this.cuts++
      near.write(data.subarray(0, left), end)
      left = 0
    })
  }
}
