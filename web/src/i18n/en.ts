const files = import.meta.glob<Record<string, unknown>>("../*/text.en.json", { eager: true, import: "default" })

/** All texts, by the folder that they are of. */
export default Object.fromEntries(Object.entries(files).map(([path, texts]) => [path.split("/")[1]!, texts]))
