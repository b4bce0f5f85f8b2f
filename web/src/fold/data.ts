// Reading the data of an event. The log is older and newer than this page: what is missing or of another
// type reads as unknown, never as an exception.

/** Text that may be none (null) or erased for ever. */
export type Text = string | null | Erased
export interface Erased {
  erased: true
}

export type Data = Record<string, unknown>

export const isErased = (text: Text): text is Erased => typeof text === "object" && text !== null

export const str = (value: unknown): string => (typeof value === "string" ? value : "")

export const num = (value: unknown): number => (typeof value === "number" ? value : 0)

export const numOrNull = (value: unknown): number | null => (typeof value === "number" ? value : null)

export const bool = (value: unknown): boolean => value === true

export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

export function object(value: unknown): Data {
  return typeof value === "object" && value !== null ? (value as Data) : {}
}

const gone: Erased = { erased: true }

export function text(value: unknown): Text {
  if (typeof value === "string") return value
  return object(value).erased === true ? gone : null
}
