import { type InfiniteData, keepPreviousData, QueryClient, useInfiniteQuery, useMutation } from "@tanstack/react-query"
import { newKey } from "./client"
import { type Problem, problemOf } from "./problem"

/** What the pages know of the server. A refusal is final; only what got no answer is asked again. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 10_000, retry: (count, error) => count < 2 && problemOf(error).mayRepeat },
    mutations: { retry: (count, error) => count < 2 && problemOf(error).mayRepeat },
  },
})

declare module "@tanstack/react-query" {
  interface Register {
    defaultError: Problem | Error
  }
}

/** One page of a list, as the server answers it. */
export type Page<T> = { items: T[]; next_cursor: string | null }

/** A list, page by page. While other filters load, what was found with the earlier ones stays. */
export function usePages<T>(key: readonly unknown[], load: (cursor: string | undefined) => Promise<Page<T>>, enabled = true) {
  const query = useInfiniteQuery<Page<T>, Error, InfiniteData<Page<T>>, readonly unknown[], string | undefined>({
    queryKey: key,
    queryFn: ({ pageParam }) => load(pageParam),
    initialPageParam: undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    enabled,
  })
  return { ...query, items: query.data?.pages.flatMap((p) => p.items) ?? [] }
}

/** All of a list that is known to be short: at most the given number of pages of 200. */
export async function loadAll<T>(load: (cursor: string | undefined) => Promise<Page<T>>, pages = 10): Promise<T[]> {
  const all: T[] = []
  let cursor: string | undefined
  for (let i = 0; i < pages; i++) {
    const page = await load(cursor)
    all.push(...page.items)
    if (!page.next_cursor) break
    cursor = page.next_cursor
  }
  return all
}

/**
 * A command. Each call of send has a key of its own, and repeats under it when no answer came: it is done once.
 */
export function useSend<In, Out>(send: (input: In, key: string) => Promise<Out>, then?: (out: Out, input: In) => void | Promise<unknown>) {
  const mutation = useMutation<Out, Error, { input: In; key: string }>({
    mutationFn: ({ input, key }) => send(input, key),
    onSuccess: (out, { input }) => then?.(out, input),
  })
  return {
    send: (input: In) => mutation.mutate({ input, key: newKey() }),
    sending: mutation.isPending,
    problem: mutation.error ? problemOf(mutation.error) : null,
    reset: mutation.reset,
  }
}
