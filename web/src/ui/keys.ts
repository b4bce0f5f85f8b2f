import { useEffect, useRef } from "react"

/** Whether a key belongs to what is being written, or to an open dialog or menu. */
function taken(e: KeyboardEvent): boolean {
  const at = e.target as HTMLElement | null
  return e.defaultPrevented || at?.closest?.("input, textarea, select, [contenteditable], dialog, [role=menu]") != null
}

/** Keys that work everywhere on a page: "?", "j", or with Ctrl or Cmd "mod+k", which work while writing too. */
export function useKeys(keys: Record<string, (e: KeyboardEvent) => void>) {
  const now = useRef(keys)
  now.current = keys
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      const mod = e.ctrlKey || e.metaKey
      const act = now.current[mod ? `mod+${e.key.toLowerCase()}` : e.key]
      if (!act || e.altKey || (!mod && taken(e))) return
      e.preventDefault()
      act(e)
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [])
}
