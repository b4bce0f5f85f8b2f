import type { components } from "../gen/api"

type Document = components["schemas"]["Problem"]

/** A refusal of the server, as docs/reference/api.md describes them; or none came, then the status is 0. */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null
  readonly errors: { location: string; message: string }[]

  constructor(status: number, code: string, detail: string, requestId: string | null = null, errors: Problem["errors"] = []) {
    super(detail)
    this.name = "Problem"
    this.status = status
    this.code = code
    this.requestId = requestId
    this.errors = errors
  }

  /** What the server sent, or as much of it as there is. */
  static of(response: Response, body: unknown): Problem {
    const document = (body !== null && typeof body === "object" ? body : {}) as Partial<Document>
    return new Problem(
      response.status,
      document.code ?? `http_${response.status}`,
      document.detail ?? response.statusText,
      document.request_id ?? response.headers.get("X-Request-Id"),
      document.errors ?? [],
    )
  }

  /** Nothing is known about what came of the request: it may be sent again under the same key. */
  get mayRepeat(): boolean {
    return this.status === 0 || this.status === 503 || this.status === 408
  }

  /** What is wrong with one field, as body.NAME. */
  field(name: string): string | undefined {
    return this.errors.find((e) => e.location === `body.${name}`)?.message
  }
}

/** Whatever was thrown, as a problem. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown
  return new Problem(0, thrown instanceof TypeError ? "unreachable" : "portal_error", thrown instanceof Error ? thrown.message : String(thrown))
}
