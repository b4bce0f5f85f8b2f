import tailwind from "@tailwindcss/vite"
import react from "@vitejs/plugin-react"
import { defineConfig } from "vite"

// 'npm run dev' shows pages from the sources; the server that it asks is CAIRN_URL.
const server = process.env.CAIRN_URL ?? "http://127.0.0.1:8080"

export default defineConfig({
  plugins: [react(), tailwind()],
  build: {
    target: "es2022",
    manifest: true,
    // The policy of the page forbids data: in scripts and styles, and everything inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1000,
  },
  server: { proxy: { "/api": { target: server, ws: true }, "/docs": server, "/openapi.json": server } },
})
