// What the other scripts here have in common: where the build is, and every file of it.
import { readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"

export const web = fileURLToPath(new URL("..", import.meta.url))
export const dist = `${web}dist/`

/** All files below a folder, as paths from it. */
export const filesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath ?? entry.path}/${entry.name}`.replaceAll("//", "/").slice(folder.length))
    .sort()
