import { queryOptions } from "@tanstack/react-query"
import { api, keyed, ok, type Schema } from "../api/client"
import { loadAll, queryClient } from "../api/query"

export type Agent = Schema["Agent"]
export type AgentSummary = Schema["AgentSummary"]
export type AgentBody = { name: string; model: string; instructions: string; tools: string[]; limits: Agent["limits"] }

/** All agents of a space: they are chosen from, and named in other lists. */
export const agentsQuery = (space: string) =>
  queryOptions<AgentSummary[]>({
    queryKey: ["space", space, "agents"],
    queryFn: () => loadAll((cursor) => ok(api.GET("/api/v1/spaces/{space}/agents", { params: { path: { space }, query: { limit: 200, cursor } } }))),
  })

export const agentQuery = (agent: string) => queryOptions<Agent>({ queryKey: ["agent", agent], queryFn: () => ok(api.GET("/api/v1/agents/{agent}", { params: { path: { agent } } })) })

export const revisions = (agent: string, cursor: string | undefined) => ok(api.GET("/api/v1/agents/{agent}/revisions", { params: { path: { agent }, query: { cursor } } }))

export const modelsQuery = queryOptions<string[]>({
  queryKey: ["models"],
  queryFn: async () => (await ok(api.GET("/api/v1/models"))).items.map((m) => m.name),
  staleTime: 60_000,
})

export const createAgent = (space: string, body: AgentBody, key: string) => ok(api.POST("/api/v1/spaces/{space}/agents", { params: { path: { space }, header: keyed(key) }, body }))

export const reviseAgent = (agent: string, body: AgentBody, expected_revision: number) => ok(api.PATCH("/api/v1/agents/{agent}", { params: { path: { agent } }, body: { ...body, expected_revision } }))

/** What is known of agents is asked for again. */
export function agentsChanged(space: string, agent?: string) {
  return Promise.all([queryClient.invalidateQueries({ queryKey: ["space", space, "agents"] }), agent ? queryClient.invalidateQueries({ queryKey: ["agent", agent] }) : undefined])
}
