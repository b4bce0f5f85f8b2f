import createClient from "openapi-fetch"
import type { components, paths } from "../gen/api"
import { Problem } from "./problem"

export type Schema = components["schemas"]

/** The server's routes, typed as the OpenAPI document has them. */
export const api = createClient<paths>({
  // Looked up at each request, so that what a test puts in its place counts.
  fetch: (request) => fetch(request),
})

type Answer<T> = { data?: T; error?: unknown; response: Response }

let ended: () => void = () => {}

/** Says what to do when the server no longer knows the session. */
export function whenSessionEnds(then: () => void) {
  ended = then
}

/** What the server answered, or a thrown Problem. */
export async function ok<T>(asked: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await asked
  if (response.ok) return data as T
  const problem = Problem.of(response, error)
  if (problem.code === "session_required") ended()
  throw problem
}

/** A key under which the server does a thing once, however often it is sent. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16)) // randomUUID is missing over plain HTTP
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("")
}

/** The header that carries a key. */
export function keyed(key: string): { "Idempotency-Key": string } {
  return { "Idempotency-Key": key }
}
