import { expect, test } from "vitest"
import type { Turn } from "../fold/conversation"
import { Outbox, visible, type Pending } from "./outbox"

class Shelf {
  value: string | null = null
  read = () => this.value
  write = (value: string | null) => void (this.value = value)
}
class Refusal extends Error {}
const mayRepeat = (thrown: unknown) => !(thrown instanceof Refusal)

const turn = (message: string, text: string, position: number): Turn => ({
  turn: message,
  message,
  run: message,
  author: "account/me",
  text,
  postedAt: "",
  state: "active",
  number: 1,
  positions: [position],
})

test("what got no answer is sent again under the same key until there is one", async () => {
  const sent: string[] = []
  const post = (text: string, key: string) => {
    sent.push(`${key} ${text}`)
    return sent.length < 3 ? Promise.reject(new TypeError("network")) : Promise.resolve({ message_id: "m" })
  }
  const box = new Outbox(post, new Shelf(), mayRepeat)
  box.send("hello", "k", 5, "")
  for (let i = 1; i <= 2; i++) {
    await expect.poll(() => sent.length).toBe(i)
    await new Promise((done) => setImmediate(done))
    box.hurry()
  }
  await expect.poll(() => box.get()[0]?.state).toBe("posted")
  expect(sent).toEqual(["k hello", "k hello", "k hello"])
  box.settle([turn("m", "hello", 9)])
  expect(box.get()).toEqual([])
})

test("a page that is loaded again goes on sending, under the same key", async () => {
  const shelf = new Shelf()
  new Outbox(() => new Promise(() => {}), shelf, mayRepeat).send("hello", "k", 5, "")
  const sent: string[] = []
  const box = new Outbox((_, key) => Promise.resolve({ message_id: (sent.push(key), "m") }), shelf, mayRepeat)
  await expect.poll(() => box.get()[0]?.state).toBe("posted")
  expect(sent).toEqual(["k"])
  expect(new Outbox(() => Promise.reject(new Error()), shelf, mayRepeat).get()).toEqual([])
})

test("a refusal stays, and says why, until it is sent again or taken back", async () => {
  let refuse = true
  const box = new Outbox(
    () => (refuse ? Promise.reject(new Refusal("full")) : Promise.resolve({ message_id: "m" })),
    new Shelf(),
    mayRepeat,
  )
  box.send("hello", "k", 5, "")
  await expect.poll(() => box.get()[0]?.state).toBe("refused")
  refuse = false
  box.again("k")
  await expect.poll(() => box.get()[0]?.state).toBe("posted")
  refuse = true
  box.send("more", "l", 5, "")
  await expect.poll(() => box.get()[1]?.state).toBe("refused")
  box.takeBack("l")
  expect(box.get().map((p) => p.key)).toEqual(["k"])
})

test("an event that comes before the answer hides one message, not two of the same words", () => {
  const one = (key: string, message: string | null, state: Pending["state"] = "sending"): Pending => ({
    key,
    text: "yes",
    at: "",
    state,
    after: 10,
    message,
    problem: null,
  })
  const two = [one("a", null), one("b", null)]
  expect(visible(two, [turn("m", "yes", 8)], "account/me")).toHaveLength(2)
  expect(visible(two, [turn("m", "yes", 11)], "account/me").map((p) => p.key)).toEqual(["b"])
  expect(visible([one("a", "m", "posted"), one("b", null)], [turn("m", "yes", 11)], "account/me").map((p) => p.key)).toEqual(["b"])
  expect(visible(two, [turn("m", "yes", 11)], "account/other")).toHaveLength(2)
  expect(visible([one("a", null, "refused")], [turn("m", "yes", 11)], "account/me")).toHaveLength(1)
})
