import { api, ok } from "../api/client"
import { LiveClient } from "./client"
import type { Connection } from "./connection"
import { liveStatus } from "./status"

/** The connection of this page. */
export const live = new LiveClient()

/** An interruption that is over within this time (milliseconds) is nobody's concern. */
const silent = 1000
let telling: ReturnType<typeof setTimeout> | undefined

const word = { idle: "off", connecting: "connecting", open: "live", lost: "lost", signed_out: "connecting", faulted: "faulted" } as const

function show(): void {
  const connection = live.connection.get()
  const position = live.position.get() || null
  const state = word[connection.phase]
  const now = liveStatus.get()
  if (state === "lost" && now.state !== "lost") {
    telling ??= setTimeout(tellLost, silent)
    return liveStatus.set({ ...now, position })
  }
  clearTimeout(telling)
  telling = undefined
  if (now.state !== state || now.position !== position) liveStatus.set({ state, position })
}

function tellLost(): void {
  telling = undefined
  if (live.connection.get().phase === "lost") liveStatus.set({ state: "lost", position: live.position.get() || null })
}

/** Asking who one is leads to the login when the session is over, and says so when it is not. */
async function askWho(connection: Connection): Promise<void> {
  if (connection.phase !== "signed_out") return
  await ok(api.GET("/api/v1/me")).then(
    () => setTimeout(live.signedIn, 5000),
    () => undefined,
  )
}

live.connection.subscribe(show)
live.position.subscribe(show)
live.connection.subscribe(() => void askWho(live.connection.get()))
live.attach(window, document)
