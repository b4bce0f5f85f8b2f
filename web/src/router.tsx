import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet, redirect } from "@tanstack/react-router"
import { meQuery } from "./account/session"
import { problemOf } from "./api/problem"
import { queryClient } from "./api/query"
import { Frame } from "./shell/frame"
import { RouteProblem } from "./shell/failed"
import { Home } from "./shell/home"
import { NotFound } from "./shell/missing"
import { InSpace } from "./space/scope"
import { runStates } from "./ui/state"

// The only list of pages. What a page shows of its state is in its address: each validateSearch says what there is.
// Pages are loaded when they are first needed.

type Search = Record<string, unknown>

const text = (s: Search, name: string): string | undefined => {
  const value = s[name]
  if (typeof value === "number" || typeof value === "boolean") return String(value)
  return typeof value === "string" && value !== "" ? value : undefined
}
const oneOf = <T extends string>(s: Search, name: string, values: readonly T[]): T | undefined => values.find((v) => v === s[name])
const whole = (s: Search, name: string): number | undefined => {
  const value = Number(s[name])
  return s[name] !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
/** Everything in an address may be left out. */
const optional =
  <T extends object>(read: (s: Search) => T) =>
  (s: Search): Partial<T> =>
    read(s)
/** A path on this server: never another host. */
const ownPath = (value: string | undefined) => (value?.startsWith("/") && !value.startsWith("//") && !value.includes("\\") ? value : undefined)

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound, errorComponent: RouteProblem })

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: optional((s) => ({ next: ownPath(text(s, "next")), ended: s.ended === true || undefined })),
  component: lazyRouteComponent(() => import("./account/login"), "Login"),
})

/** Everything else needs a session, and has the frame around it. */
const app = createRoute({
  getParentRoute: () => root,
  id: "app",
  beforeLoad: async ({ location }) => {
    try {
      await queryClient.ensureQueryData(meQuery)
    } catch (thrown) {
      if (problemOf(thrown).status === 401) throw redirect({ to: "/login", search: { next: location.href === "/" ? undefined : location.href } })
      throw thrown
    }
  },
  component: Frame,
  errorComponent: RouteProblem,
})

const home = createRoute({ getParentRoute: () => app, path: "/", component: Home })

const account = createRoute({
  getParentRoute: () => app,
  path: "/account",
  component: lazyRouteComponent(() => import("./account/page"), "AccountPage"),
})

export const runTabs = ["thread", "timeline", "changes", "boundary", "events"] as const
export type RunTab = (typeof runTabs)[number]

const run = createRoute({
  getParentRoute: () => app,
  path: "/runs/$run",
  validateSearch: optional((s) => ({ tab: oneOf(s, "tab", runTabs), event: text(s, "event"), position: whole(s, "position"), path: text(s, "path"), q: text(s, "q") })),
  component: lazyRouteComponent(() => import("./run/page"), "RunPage"),
})

const space = createRoute({ getParentRoute: () => app, path: "/s/$space", component: InSpace })

const spaceHome = createRoute({
  getParentRoute: () => space,
  path: "/",
  beforeLoad: ({ params }) => {
    throw redirect({ to: "/s/$space/conversations", params, replace: true })
  },
})

const conversations = createRoute({
  getParentRoute: () => space,
  path: "/conversations",
  validateSearch: optional((s) => ({ q: text(s, "q"), agent: text(s, "agent"), state: oneOf(s, "state", ["active", "idle"] as const), new: s.new === true || undefined })),
  component: lazyRouteComponent(() => import("./conversation/list"), "ConversationList"),
})

const conversation = createRoute({
  getParentRoute: () => space,
  path: "/conversations/$id",
  validateSearch: optional((s) => ({ event: text(s, "event"), position: whole(s, "position"), q: text(s, "q") })),
  component: lazyRouteComponent(() => import("./conversation/page"), "ConversationPage"),
})

const tasks = createRoute({
  getParentRoute: () => space,
  path: "/tasks",
  validateSearch: optional((s) => ({ q: text(s, "q"), agent: text(s, "agent"), state: oneOf(s, "state", runStates), new: s.new === true || undefined })),
  component: lazyRouteComponent(() => import("./task/list"), "TaskList"),
})

const task = createRoute({
  getParentRoute: () => space,
  path: "/tasks/$id",
  component: lazyRouteComponent(() => import("./task/page"), "TaskPage"),
})

const agents = createRoute({
  getParentRoute: () => space,
  path: "/agents",
  validateSearch: optional((s) => ({ new: s.new === true || undefined })),
  component: lazyRouteComponent(() => import("./agent/list"), "AgentList"),
})

const agent = createRoute({
  getParentRoute: () => space,
  path: "/agents/$id",
  validateSearch: optional((s) => ({ edit: s.edit === true || undefined, from: whole(s, "from"), to: whole(s, "to") })),
  component: lazyRouteComponent(() => import("./agent/page"), "AgentPage"),
})

const files = createRoute({
  getParentRoute: () => space,
  path: "/files",
  validateSearch: optional((s) => ({ q: text(s, "q"), folder: text(s, "folder") })),
  component: lazyRouteComponent(() => import("./file/list"), "FileList"),
})

const members = createRoute({
  getParentRoute: () => space,
  path: "/members",
  component: lazyRouteComponent(() => import("./space/members"), "Members"),
})

const inSpace = [spaceHome, conversations, conversation, tasks, task, agents, agent, files, members]

export const router = createRouter({
  routeTree: root.addChildren([login, app.addChildren([home, account, run, space.addChildren(inSpace)])]),
  defaultPreload: "intent",
  defaultPreloadStaleTime: 0,
  scrollRestoration: false, // the frame's pages scroll inside
  defaultNotFoundComponent: NotFound,
})

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router
  }
}
