import { queryOptions, useQuery } from "@tanstack/react-query"
import { api, ok, type Schema } from "../api/client"
import { loadAll } from "../api/query"
import { createStore, kept } from "../ui/store"

export type Space = Schema["Space"]

export const spacesQuery = queryOptions<Space[]>({
  queryKey: ["spaces"],
  queryFn: () => loadAll((cursor) => ok(api.GET("/api/v1/spaces", { params: { query: { limit: 200, cursor } } }))),
  staleTime: 60_000,
})

/** Addresses name a space by its slug; by its id where it has none that can be read. */
export const spaceName = (space: Space) => space.slug ?? space.space_id
export const findSpace = (spaces: readonly Space[], asked: string) => spaces.find((s) => s.slug === asked || s.space_id === asked)

/** The space that the frame shows. Pages outside of one, such as a run, say which they belong to. */
export const shownSpace = createStore<string | null>(kept.get("space"))

export function showSpace(id: string) {
  kept.set("space", id)
  shownSpace.set(id)
}

/** The space that is shown, or the first one; undefined while they load, and when there is none. */
export function useShownSpace(): Space | undefined {
  const { data } = useQuery(spacesQuery)
  const shown = shownSpace.use()
  return data?.find((s) => s.space_id === shown) ?? data?.[0]
}

/** What a role may do: auditors read; admins and owners care for members. */
export const mayWork = (space: Space | undefined) => space !== undefined && space.role !== "auditor"
export const mayManage = (space: Space | undefined) => space?.role === "owner" || space?.role === "admin"
