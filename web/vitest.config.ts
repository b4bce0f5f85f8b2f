import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", environment: "node", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] } },
      {
        test: {
          name: "browser",
          environment: "node",
          include: ["test/**/*.test.ts"],
          globalSetup: ["test/setup.ts"],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
