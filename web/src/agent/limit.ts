/** The tools that an agent may be given, in the order in which they are shown. */
export const tools = ["shell", "read", "write", "edit", "glob", "grep"] as const

/** The bounds of one run: what applies unless something else is asked for, and the most that may be asked for. */
export const limits = {
  wall_seconds: { standard: 3600, most: 86_400 },
  model_calls: { standard: 100, most: 1000 },
  tool_seconds: { standard: 600, most: 7200 },
  output_bytes: { standard: 262_144, most: 524_288 },
} as const

export type LimitName = keyof typeof limits
export const limitNames = Object.keys(limits) as LimitName[]
export const standardLimits = Object.fromEntries(limitNames.map((name) => [name, limits[name].standard])) as Record<LimitName, number>
