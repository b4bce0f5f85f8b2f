import type { StoredFile } from "./query"

export type Folder = { name: string; files: number; bytes: number }

/** What lies directly in a folder: its folders with all that is below them, and its files, both by name. */
export function inFolder(all: readonly StoredFile[], folder: string, language: string): { folders: Folder[]; files: StoredFile[] } {
  const prefix = folder === "" ? "" : `${folder}/`
  const folders = new Map<string, Folder>()
  const files: StoredFile[] = []
  for (const file of all) {
    if (file.path !== null && !file.path.startsWith(prefix)) continue
    const rest = file.path?.slice(prefix.length) ?? ""
    const cut = rest.indexOf("/")
    if (cut < 0) {
      files.push(file)
      continue
    }
    const name = rest.slice(0, cut)
    const known = folders.get(name) ?? { name, files: 0, bytes: 0 }
    folders.set(name, { name, files: known.files + 1, bytes: known.bytes + file.size })
  }
  const order = new Intl.Collator(language, { numeric: true }).compare
  return {
    folders: [...folders.values()].sort((a, b) => order(a.name, b.name)),
    files: files.sort((a, b) => order(a.path ?? "", b.path ?? "")),
  }
}
