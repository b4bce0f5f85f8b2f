import { keyed, newKey } from "../api/client"
import { Problem } from "../api/problem"

export type Picked = { path: string; file: File }

/** What one request takes (docs/reference/api.md). */
export const mostFiles = 2000
export const mostBytes = 64 << 20

/** Divides files into requests that the server takes; one that is too large alone is left to the server's refusal. */
export function batches(picked: readonly Picked[]): Picked[][] {
  const all: Picked[][] = []
  let [bytes, now] = [0, [] as Picked[]]
  for (const one of picked) {
    if (now.length > 0 && (now.length === mostFiles || bytes + one.file.size > mostBytes)) {
      all.push(now)
      ;[bytes, now] = [0, []]
    }
    now.push(one)
    bytes += one.file.size
  }
  return now.length > 0 ? [...all, now] : all
}

/** Sends files, all or none of a request; tells how many bytes of all requests are on their way. */
export async function upload(space: string, picked: readonly Picked[], progress: (sent: number) => void, signal: AbortSignal) {
  let before = 0
  for (const batch of batches(picked)) {
    await send(space, batch, (sent) => progress(before + sent), signal)
    before += batch.reduce((sum, p) => sum + p.file.size, 0)
    progress(before)
  }
}

function send(space: string, batch: Picked[], progress: (sent: number) => void, signal: AbortSignal): Promise<void> {
  const form = new FormData()
  for (const { path, file } of batch) form.append("file", file, path)
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest() // fetch does not tell how much was sent
    request.open("POST", `/api/v1/spaces/${space}/files`)
    for (const [name, value] of Object.entries(keyed(newKey()))) request.setRequestHeader(name, value)
    request.responseType = "json"
    request.upload.onprogress = (e) => progress(Math.min(e.loaded, batch.reduce((sum, p) => sum + p.file.size, 0)))
    request.onload = () => (request.status < 300 ? resolve() : reject(Problem.of(new Response(null, { status: request.status }), request.response)))
    request.onerror = () => reject(new Problem(0, "unreachable", ""))
    request.onabort = () => reject(new Problem(0, "aborted", ""))
    signal.addEventListener("abort", () => request.abort())
    request.send(form)
  })
}

/** Files of a picker: those of a picked folder bring their path. */
export const ofPicker = (list: FileList | null, folder: string): Picked[] => [...(list ?? [])].map((file) => ({ path: join(folder, file.webkitRelativePath || file.name), file }))

/** Files and folders that were dropped. */
export async function ofDrop(transfer: DataTransfer, folder: string): Promise<Picked[]> {
  // The entries must be taken before anything is waited for.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((e) => e !== null)
  const found: Picked[] = []
  const visit = async (entry: FileSystemEntry): Promise<void> => {
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))
      found.push({ path: join(folder, entry.fullPath.replace(/^\//, "")), file })
      return
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader()
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
      if (some.length === 0) return
      for (const inner of some) await visit(inner)
    }
  }
  for (const entry of entries) await visit(entry)
  return found
}

const join = (folder: string, path: string) => (folder === "" ? path : `${folder}/${path}`)
