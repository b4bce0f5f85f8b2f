import { queryOptions } from "@tanstack/react-query"
import { api, keyed, ok, type Schema } from "../api/client"

export type Run = Schema["Run"]
export type Change = Schema["Change"]
export type Changes = Schema["Changes"]

const path = (run: string) => ({ path: { run } })

export const runQuery = (run: string) => queryOptions<Run>({ queryKey: ["run", run], queryFn: () => ok(api.GET("/api/v1/runs/{run}", { params: path(run) })) })

export const conversationTitle = (conversation: string) =>
  queryOptions<Schema["Conversation"]>({ queryKey: ["conversation", conversation], queryFn: () => ok(api.GET("/api/v1/conversations/{conversation}", { params: { path: { conversation } } })) })

export const runChanges = (run: string, cursor: string | undefined) => ok(api.GET("/api/v1/runs/{run}/changes", { params: { ...path(run), query: { limit: 200, cursor } } }))

/** A diff never changes once it is recorded. */
export const diffQuery = (run: string, file: string) =>
  queryOptions<Schema["Diff"]>({ queryKey: ["run", run, "diff", file], queryFn: () => ok(api.GET("/api/v1/runs/{run}/changes/diff", { params: { ...path(run), query: { path: file } } })), staleTime: Infinity })

export const boundaryQuery = (run: string) => queryOptions<Schema["Boundary"]>({ queryKey: ["run", run, "boundary"], queryFn: () => ok(api.GET("/api/v1/runs/{run}/boundary", { params: path(run) })) })

export const cancelRun = (run: string, key: string) => ok(api.POST("/api/v1/runs/{run}/cancel", { params: { ...path(run), header: keyed(key) } }))

export const retryRun = (run: string, key: string) => ok(api.POST("/api/v1/runs/{run}/retry", { params: { ...path(run), header: keyed(key) }, body: {} }))
