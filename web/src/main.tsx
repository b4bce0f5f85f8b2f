import "./style/app.css"
import { QueryClientProvider } from "@tanstack/react-query"
import { RouterProvider } from "@tanstack/react-router"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { whenSessionEnds } from "./api/client"
import { queryClient } from "./api/query"
import { startTexts } from "./i18n"
import { router } from "./router"
import { Toasts } from "./ui/toast"

// A session that ends under way leads to the login, and from there back to where one was.
whenSessionEnds(() => {
  const { pathname, href } = router.state.location
  if (pathname === "/login" || router.state.status !== "idle") return
  queryClient.removeQueries({ queryKey: ["me"] })
  void router.navigate({ to: "/login", search: { next: href, ended: true } })
})

await startTexts()

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
      <Toasts />
    </QueryClientProvider>
  </StrictMode>,
)
