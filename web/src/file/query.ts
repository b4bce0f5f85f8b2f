import { queryOptions } from "@tanstack/react-query"
import { api, ok, type Schema } from "../api/client"
import { queryClient } from "../api/query"

export type StoredFile = Schema["File"]
export type Source = Schema["Source"]
export type SourceIn = Schema["SourceIn"]

/** How many files a folder's view takes in; beyond it says so. */
export const mostShown = 2000

/** The files below a folder, at any depth: folders are made of their paths. */
export const filesQuery = (space: string, folder: string, q: string | undefined) =>
  queryOptions<{ files: StoredFile[]; more: boolean }>({
    queryKey: ["space", space, "files", folder, q ?? ""],
    queryFn: async () => {
      const files: StoredFile[] = []
      let cursor: string | undefined
      do {
        const page = await ok(api.GET("/api/v1/spaces/{space}/files", { params: { path: { space }, query: { folder: folder || undefined, q, cursor, limit: 200 } } }))
        files.push(...page.items)
        cursor = page.next_cursor ?? undefined
      } while (cursor && files.length < mostShown)
      return { files, more: cursor !== undefined }
    },
  })

export const sourcesQuery = (space: string) =>
  queryOptions<Source[]>({
    queryKey: ["space", space, "sources"],
    queryFn: async () => (await ok(api.GET("/api/v1/spaces/{space}/sources", { params: { path: { space } } }))).items,
  })

export const removeFile = (file: string) => ok(api.DELETE("/api/v1/files/{file}", { params: { path: { file } } }))

export const filesChanged = (space: string) =>
  Promise.all([queryClient.invalidateQueries({ queryKey: ["space", space, "files"] }), queryClient.invalidateQueries({ queryKey: ["space", space, "sources"] })])
