import { useQuery } from "@tanstack/react-query"
import { getRouteApi, Link } from "@tanstack/react-router"
import { useEffect, useMemo, useState, useSyncExternalStore } from "react"
import { useTranslation } from "react-i18next"
import { meQuery } from "../account/session"
import { api, keyed, ok } from "../api/client"
import { problemOf } from "../api/problem"
import { live } from "../live/live"
import { mayWork, spaceName } from "../space/space"
import { useSpace } from "../space/scope"
import { Empty, PageHead, Skeleton } from "../ui/page"
import { ProblemNote } from "../ui/problem"
import { Announcer } from "./announcer"
import { Composer } from "./composer"
import { Outbox, visible } from "./outbox"
import { rowsOf } from "./row"
import { sourceOf } from "./source"
import { Thread } from "./thread"
import { ThreadView } from "./view"

const route = getRouteApi("/app/s/$space/conversations/$id")

export function ConversationPage() {
  const { id } = route.useParams()
  return <OneConversation key={id} id={id} />
}

function OneConversation({ id }: { id: string }) {
  const { t } = useTranslation()
  const space = useSpace()
  const asked = useQuery({
    queryKey: ["conversation", id],
    queryFn: () => ok(api.GET("/api/v1/conversations/{conversation}", { params: { path: { conversation: id } } })),
  })
  const [thread] = useState(() => new Thread(id, live, sourceOf(id)))
  const state = useSyncExternalStore(thread.subscribe, thread.get)
  const outbox = useOutbox(id)
  const pending = useSyncExternalStore(outbox.subscribe, outbox.get)
  const me = useQuery(meQuery).data?.account_id
  const turns = state.conversation.turns
  useEffect(() => outbox.settle(turns), [outbox, turns])
  const rows = useMemo(() => rowsOf(state, visible(pending, turns, `account/${me}`)), [state, pending, turns, me])
  const title = asked.data ? (asked.data.title ?? t("conversation.erased")) : t("conversation.title")
  const refused = state.phase === "refused" ? state.problem : asked.error
  const gone = state.phase === "gone"
  return (
    <div className="flex h-full flex-col" data-thread={state.phase} data-positions={state.conversation.positions.join(" ")}>
      <PageHead
        title={title}
        above={
          <Link to="/s/$space/conversations" params={{ space: spaceName(space) }} className="text-sm text-muted">
            {t("shell.place.conversations")}
          </Link>
        }
      />
      {refused ? (
        <div className="px-4 sm:px-6">
          <ProblemNote problem={problemOf(refused)} again={thread.again} />
        </div>
      ) : state.phase === "loading" ? (
        <div className="min-h-0 flex-1 overflow-hidden">
          <Skeleton />
        </div>
      ) : rows.length === 0 && !gone ? (
        <div className="min-h-0 flex-1 overflow-y-auto">
          <Empty icon="conversation" title={t("conversation.empty.title")}>
            {t("conversation.empty.about")}
          </Empty>
        </div>
      ) : (
        <ThreadView rows={rows} thread={thread} outbox={outbox} older={state.older} mayWork={mayWork(space)} />
      )}
      <Announcer state={state} />
      {gone && <p className="border-t bg-warn-soft px-4 py-2 text-sm text-warn sm:px-6">{t("conversation.gone")}</p>}
      {mayWork(space) && !gone && (
        <Composer id={id} send={(text, key) => outbox.send(text, key, live.position.get(), new Date().toISOString())} />
      )}
    </div>
  )
}

/** Messages on their way, kept by the browser's tab as long as it lives. */
function useOutbox(id: string): Outbox {
  const [outbox] = useState(() => {
    const name = `cairn.outbox.${id}`
    const shelf = {
      read: () => sessionStorage.getItem(name),
      write: (value: string | null) => (value === null ? sessionStorage.removeItem(name) : sessionStorage.setItem(name, value)),
    }
    const post = (text: string, key: string) =>
      ok(
        api.POST("/api/v1/conversations/{conversation}/messages", {
          params: { path: { conversation: id }, header: keyed(key) },
          body: { text },
        }),
      )
    return new Outbox(post, shelf, (thrown) => problemOf(thrown).mayRepeat)
  })
  useEffect(() => live.connection.subscribe(() => live.connection.get().phase === "open" && outbox.hurry()), [outbox])
  return outbox
}
