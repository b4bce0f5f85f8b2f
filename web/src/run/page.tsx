import { useQuery } from "@tanstack/react-query"
import { getRouteApi } from "@tanstack/react-router"
import { type ComponentType, lazy, Suspense, useEffect, useState, useSyncExternalStore } from "react"
import { useTranslation } from "react-i18next"
import { api, ok } from "../api/client"
import { problemOf } from "../api/problem"
import { queryClient } from "../api/query"
import type { LogEvent } from "../live/frame"
import { live } from "../live/live"
import { NotFound } from "../shell/missing"
import { showSpace } from "../space/space"
import { Loaded, PageHead, Skeleton } from "../ui/page"
import { ProblemNote } from "../ui/problem"
import { Head } from "./head"
import { type LogState, RunLog } from "./log"
import { type Run, runQuery } from "./query"
import { Tabs } from "./tabs"

const route = getRouteApi("/app/runs/$run")

export type TabProps = { run: Run; log: LogState }

/** Each is loaded when it is looked at. */
const tabs: Record<string, ComponentType<TabProps>> = {
  thread: lazy(() => import("./thread").then((m) => ({ default: m.ThreadTab }))),
  timeline: lazy(() => import("./timeline").then((m) => ({ default: m.TimelineTab }))),
  changes: lazy(() => import("./changes").then((m) => ({ default: m.ChangesTab }))),
  boundary: lazy(() => import("./boundary_tab").then((m) => ({ default: m.BoundaryTab }))),
  events: lazy(() => import("./events").then((m) => ({ default: m.EventsTab }))),
}

export function RunPage() {
  const { t } = useTranslation()
  const { run: id } = route.useParams()
  const query = useQuery(runQuery(id))
  if (query.error && problemOf(query.error).status === 404) return <NotFound />
  if (query.data) return <OneRun key={id} asked={query.data} />
  return (
    <>
      <PageHead title={t("run.title")} />
      <Loaded of={query}>{null}</Loaded>
    </>
  )
}

/** The run as REST has it, and as far as its events are ahead of that. */
function ahead(asked: Run, log: LogState): Run {
  const told = log.run
  if (!told || told.version < asked.version) return asked
  return {
    ...asked,
    state: told.status,
    steps: told.steps.length,
    cancel_asked: told.cancelRequested,
    input_tokens: told.inputTokens,
    output_tokens: told.outputTokens,
    started_at: told.startedAt,
    ended_at: told.endedAt,
    failure_code: told.failureCode || null,
  }
}

function OneRun({ asked }: { asked: Run }) {
  const { t } = useTranslation()
  const { tab = "thread" } = route.useSearch()
  const [store] = useState(() => new RunLog(asked.run_id, asked.task_id ?? asked.conversation_id, live, (after) => readEvents(asked.run_id, after)))
  const log = useSyncExternalStore(store.subscribe, store.get)
  const run = ahead(asked, log)
  useEffect(() => showSpace(asked.space_id), [asked.space_id])
  useFresh(asked, run)
  const Tab = tabs[tab]!
  return (
    <div className="flex h-full min-h-120 flex-col" data-log={log.phase} data-events={log.events.length}>
      <Head run={run} log={log} />
      <Tabs current={tab} />
      {log.phase === "gone" && <p className="border-b bg-warn-soft px-4 py-2 text-sm text-warn sm:px-6">{t("run.gone")}</p>}
      <div role="tabpanel" id="run-panel" aria-labelledby={`tab-${tab}`} className="flex min-h-0 flex-1 flex-col">
        {log.phase === "refused" ? (
          <div className="p-4 sm:px-6">
            <ProblemNote problem={problemOf(log.problem)} again={store.again} />
          </div>
        ) : (
          <Suspense fallback={<Skeleton />}>
            <Tab run={run} log={log} />
          </Suspense>
        )}
      </div>
    </div>
  )
}

/** What the events do not tell, such as the answer's place in lists, is asked for again when the state changes. */
function useFresh(asked: Run, run: Run) {
  useEffect(() => {
    if (asked.state !== run.state) void queryClient.invalidateQueries({ queryKey: ["run", asked.run_id] })
  }, [asked.state, run.state, asked.run_id])
}

async function readEvents(run: string, after: number) {
  const page = await ok(api.GET("/api/v1/runs/{run}/events", { params: { path: { run }, query: { after, limit: 500 } } }))
  return { events: page.events as unknown as LogEvent[], next: page.next_after, more: page.more }
}
