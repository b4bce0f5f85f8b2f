import { useEffect, useState } from "react"
import { SearchBox } from "./field"

/** A search that is in the address: it follows what is typed, a moment later. */
export function SearchQuery({ label, value, onSearch }: { label: string; value: string | undefined; onSearch: (value: string | undefined) => void }) {
  const [typed, setTyped] = useState(value ?? "")
  const [known, setKnown] = useState(value)
  if (value !== known) {
    setKnown(value)
    setTyped(value ?? "")
  }
  useEffect(() => {
    const text = typed.trim() || undefined
    if (text === value) return
    const wait = setTimeout(() => onSearch(text), 250)
    return () => clearTimeout(wait)
  }, [typed])
  return <SearchBox label={label} value={typed} maxLength={200} onChange={(e) => setTyped(e.target.value)} className="w-56 max-w-full" />
}
