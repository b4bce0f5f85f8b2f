import { expect, it } from "vitest"
import { formatOf } from "./format"

it("writes sizes and times as each language does", () => {
  const [en, zh] = [formatOf("en"), formatOf("zh")]
  expect([0, 1, 8, 999, 1000, 1536, 64_000_000].map(en.bytes)).toEqual(["0 bytes", "1 byte", "8 bytes", "999 bytes", "1 kB", "1.5 kB", "64 MB"])
  expect(zh.bytes(8)).toBe("8字节")
  expect(en.duration(999)).toBe("999 ms")
  expect(en.duration(1500)).toBe("1.5 sec")
  expect(en.duration(3_725_000)).toBe("1 hr 2 min")
  const now = Date.parse("2026-01-02T00:00:00Z")
  expect(en.ago("2026-01-01T23:59:30Z", now)).toBe("now")
  expect(en.ago("2026-01-01T22:00:00Z", now)).toMatch(/^2 hr\.? ago$/)
})
