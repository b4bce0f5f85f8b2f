import { queryOptions } from "@tanstack/react-query"
import { api, keyed, ok, type Schema } from "../api/client"
import { queryClient } from "../api/query"
import type { SourceIn } from "../file/query"
import type { RunState } from "../ui/state"

export type Task = Schema["Task"]
export type TaskFilter = { q?: string | undefined; agent?: string | undefined; state?: RunState | undefined }
export type TaskBody = { agent_id: string; title: string; prompt: string; source: SourceIn }

export const tasksKey = (space: string, filter: TaskFilter = {}) => ["space", space, "tasks", filter] as const

export const loadTasks = (space: string, { q, agent, state }: TaskFilter, cursor?: string, limit?: number) =>
  ok(api.GET("/api/v1/spaces/{space}/tasks", { params: { path: { space }, query: { q, agent_id: agent, state: state && [state], cursor, limit } } }))

export const taskQuery = (task: string) => queryOptions<Task>({ queryKey: ["task", task], queryFn: () => ok(api.GET("/api/v1/tasks/{task}", { params: { path: { task } } })) })

export const taskRuns = (task: string, cursor?: string) => ok(api.GET("/api/v1/tasks/{task}/runs", { params: { path: { task }, query: { cursor } } }))

export const openTask = (space: string, body: TaskBody, key: string) => ok(api.POST("/api/v1/spaces/{space}/tasks", { params: { path: { space }, header: keyed(key) }, body }))

export const startAttempt = (task: string, body: { mode: "continue" | "retry"; prompt?: string }, key: string) => ok(api.POST("/api/v1/tasks/{task}/runs", { params: { path: { task }, header: keyed(key) }, body }))

export const cancelTask = (task: string, key: string) => ok(api.POST("/api/v1/tasks/{task}/cancel", { params: { path: { task }, header: keyed(key) } }))

export const taskChanged = (space: string, task: string) => Promise.all([queryClient.invalidateQueries({ queryKey: ["task", task] }), queryClient.invalidateQueries({ queryKey: ["space", space, "tasks"] })])
