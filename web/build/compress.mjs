// After a build: moves the manifest out of what is handed out, and packs every file that gets smaller by it.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { dist, filesIn, web } from "./files.mjs"

mkdirSync(`${web}.build`, { recursive: true })
renameSync(`${dist}.vite/manifest.json`, `${web}.build/manifest.json`)
rmSync(`${dist}.vite`, { recursive: true })

for (const name of filesIn(dist)) {
  if (/\.(br|gz)$|\/?\.keep$/.test(name)) continue
  const plain = readFileSync(dist + name)
  const packed = {
    br: brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length } }),
    gz: gzipSync(plain, { level: 9 }),
  }
  for (const [ending, body] of Object.entries(packed)) if (body.length < plain.length) writeFileSync(`${dist}${name}.${ending}`, body)
}
