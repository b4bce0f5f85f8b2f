import { queryOptions, useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { api, ok, type Schema } from "../api/client"
import { loadAll } from "../api/query"
import { useShownSpace } from "./space"

export type Member = Schema["Membership"]
export type Role = Member["role"]
export const roles = ["owner", "admin", "member", "auditor"] as const

export const membersQuery = (space: string) =>
  queryOptions<Member[]>({
    queryKey: ["space", space, "members"],
    queryFn: () => loadAll((cursor) => ok(api.GET("/api/v1/spaces/{space}/memberships", { params: { path: { space }, query: { limit: 200, cursor } } }))),
    staleTime: 60_000,
  })

/** Who acted, for people: the name of a member, else as much as is known. */
export function useActor(): (actor: string) => string {
  const { t } = useTranslation()
  const space = useShownSpace()
  const { data } = useQuery({ ...membersQuery(space?.space_id ?? ""), enabled: space !== undefined })
  return (actor) => {
    const [kind, id = ""] = actor.split("/", 2)
    if (kind === "account") return data?.find((m) => m.account_id === id)?.name ?? t("space.somebody", { id: id.slice(0, 8) })
    if (kind === "worker") return t("space.worker", { name: id })
    return t("space.system")
  }
}
