import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { agentsQuery } from "../agent/query"
import { conversationsKey, loadConversations } from "../conversation/query"
import { mayWork, type Space, spaceName, spacesQuery, useShownSpace } from "../space/space"
import { loadTasks, tasksKey } from "../task/query"
import type { IconName } from "../ui/icon"
import { places } from "./nav"

export type Choice = { id: string; icon: IconName; text: string; about: string; go: () => void }

/** How many of each kind are shown that the server finds. */
const most = 6

/** What fits what was typed: pages, actions, spaces and agents at once, conversations and tasks as the server finds them. */
export function useChoices(asked: string): Choice[] {
  const own = useOwn()
  const agents = useAgents()
  const found = useFound(useLater(asked.trim()))
  const words = asked.toLowerCase().split(/\s+/)
  const fits = (c: Choice) => words.every((word) => c.text.toLowerCase().includes(word))
  return [...own.filter(fits), ...(asked.trim() ? agents.filter(fits) : []), ...found]
}

/** What was typed, a moment after the last key. */
function useLater(text: string): string {
  const [later, setLater] = useState(text)
  useEffect(() => {
    const wait = setTimeout(() => setLater(text), 150)
    return () => clearTimeout(wait)
  }, [text])
  return later
}

function useOwn(): Choice[] {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { data: spaces } = useQuery(spacesQuery)
  const shown = useShownSpace()
  const all: Choice[] = []
  const page = t("shell.palette.page")
  if (shown) {
    const params = { space: spaceName(shown) }
    for (const place of places) all.push({ id: place.to, icon: place.icon, text: t(place.text), about: page, go: () => void navigate({ to: place.to, params }) })
    if (mayWork(shown)) {
      const action = t("shell.palette.action")
      const search = { new: true } as const
      all.push(
        { id: "new-conversation", icon: "plus", text: t("conversation.list.create"), about: action, go: () => void navigate({ to: "/s/$space/conversations", params, search }) },
        { id: "new-task", icon: "plus", text: t("task.create"), about: action, go: () => void navigate({ to: "/s/$space/tasks", params, search }) },
        { id: "new-agent", icon: "plus", text: t("agent.create"), about: action, go: () => void navigate({ to: "/s/$space/agents", params, search }) },
      )
    }
  }
  all.push({ id: "account", icon: "person", text: t("account.title"), about: page, go: () => void navigate({ to: "/account" }) })
  for (const space of spaces ?? []) {
    all.push({ id: space.space_id, icon: "members", text: space.name ?? t("space.unnamed"), about: t("shell.space"), go: () => void navigate({ to: "/s/$space/conversations", params: { space: spaceName(space) } }) })
  }
  return all
}

function useAgents(): Choice[] {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const shown = useShownSpace()
  const { data } = useQuery({ ...agentsQuery(shown?.space_id ?? ""), enabled: shown !== undefined })
  if (!shown || !data) return []
  return data.map((a) => ({ id: a.agent_id, icon: "agent", text: a.name ?? t("ui.erased"), about: t("agent.one"), go: () => void navigate({ to: "/s/$space/agents/$id", params: { space: spaceName(shown), id: a.agent_id } }) }))
}

function useFound(q: string): Choice[] {
  const shown = useShownSpace()
  const enabled = shown !== undefined && q !== ""
  const space = shown?.space_id ?? ""
  const conversations = useQuery({ queryKey: [...conversationsKey(space, { q }), "palette"], queryFn: () => loadConversations(space, { q }, undefined, most), enabled })
  const tasks = useQuery({ queryKey: [...tasksKey(space, { q }), "palette"], queryFn: () => loadTasks(space, { q }, undefined, most), enabled })
  const conversation = useGo("conversation", shown)
  const task = useGo("task", shown)
  if (!enabled) return []
  return [...(conversations.data?.items ?? []).map((c) => conversation(c.conversation_id, c.title)), ...(tasks.data?.items ?? []).map((x) => task(x.task_id, x.title))]
}

function useGo(noun: "conversation" | "task", space: Space | undefined): (id: string, title: string | null) => Choice {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const to = noun === "task" ? "/s/$space/tasks/$id" : "/s/$space/conversations/$id"
  return (id, title) => ({
    id,
    icon: noun,
    text: title ?? t("ui.erased"),
    about: noun === "task" ? t("task.one") : t("conversation.list.one"),
    go: () => space && void navigate({ to, params: { space: spaceName(space), id } }),
  })
}
