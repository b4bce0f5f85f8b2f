import { api, keyed, ok, type Schema } from "../api/client"
import { queryClient } from "../api/query"
import type { SourceIn } from "../file/query"

export type Conversation = Schema["Conversation"]
export type ConversationFilter = { q?: string | undefined; agent?: string | undefined; state?: "active" | "idle" | undefined }

export const conversationsKey = (space: string, filter: ConversationFilter = {}) => ["space", space, "conversations", filter] as const

export const loadConversations = (space: string, { q, agent, state }: ConversationFilter, cursor?: string, limit?: number) =>
  ok(api.GET("/api/v1/spaces/{space}/conversations", { params: { path: { space }, query: { q, agent_id: agent, state, cursor, limit } } }))

/** The beginning of a message as a title: its first line that says something, without half a character at the end. */
export function titleOf(message: string, most = 80): string {
  const line =
    message
      .split("\n")
      .map((l) => l.trim())
      .find((l) => l !== "") ?? ""
  const signs = [...line]
  return signs.length > most
    ? `${signs
        .slice(0, most - 1)
        .join("")
        .trimEnd()}…`
    : line
}

export type Start = { agent_id: string; source: SourceIn; message: string }

/** Opens a conversation and posts its first message. Sent again under the same key, both are done once. */
export async function startConversation(space: string, { agent_id, source, message }: Start, key: string): Promise<string> {
  const { conversation_id } = await ok(
    api.POST("/api/v1/spaces/{space}/conversations", {
      params: { path: { space }, header: keyed(`${key}-open`) },
      body: { agent_id, source, title: titleOf(message) },
    }),
  )
  await ok(
    api.POST("/api/v1/conversations/{conversation}/messages", {
      params: { path: { conversation: conversation_id }, header: keyed(`${key}-post`) },
      body: { text: message },
    }),
  )
  void queryClient.invalidateQueries({ queryKey: ["space", space, "conversations"] })
  return conversation_id
}
