import { useQuery } from "@tanstack/react-query"
import { getRouteApi, Outlet } from "@tanstack/react-router"
import { createContext, useContext, useEffect } from "react"
import { NotFound } from "../shell/missing"
import { Loaded } from "../ui/page"
import { findSpace, showSpace, type Space, spacesQuery } from "./space"

const route = getRouteApi("/app/s/$space")
const Current = createContext<Space | null>(null)

/** The space of the address: what is below has it by useSpace. */
export function InSpace() {
  const { space: asked } = route.useParams()
  const spaces = useQuery(spacesQuery)
  const found = spaces.data && findSpace(spaces.data, asked)
  const id = found?.space_id
  useEffect(() => {
    if (id) showSpace(id)
  }, [id])
  return (
    <Loaded of={spaces}>
      {found ? (
        <Current value={found} key={found.space_id}>
          <Outlet />
        </Current>
      ) : (
        <NotFound />
      )}
    </Loaded>
  )
}

/** The space of the page. Only for pages under /s/$space. */
export function useSpace(): Space {
  const space = useContext(Current)
  if (!space) throw new Error("useSpace is for pages under /s/$space")
  return space
}
