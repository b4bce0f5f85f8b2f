import { queryOptions } from "@tanstack/react-query"
import { api, ok, type Schema } from "../api/client"
import { queryClient } from "../api/query"

export type Me = Schema["Me"]

export const meQuery = queryOptions<Me>({ queryKey: ["me"], queryFn: () => ok(api.GET("/api/v1/me")), staleTime: 60_000 })

export async function logIn(body: { email: string; code: string } | { email: string; password: string }) {
  const signedIn = await ok(api.POST("/api/v1/login", { body }))
  queryClient.clear()
  return signedIn
}

export async function logOut() {
  await ok(api.POST("/api/v1/logout"))
  queryClient.clear()
}

export async function setPassword(body: { password: string; current_password?: string }) {
  await ok(api.POST("/api/v1/me/password", { body }))
  await queryClient.invalidateQueries({ queryKey: ["me"] })
}
