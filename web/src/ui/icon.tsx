/** Line drawings of 16 by 16. They only repeat what a text or label says, so they are hidden from readers. */
const paths = {
  conversation: "M2.5 3.5h11v7.5h-6l-3 2.5v-2.5h-2z",
  task: "M2.5 2.5h11v11h-11zM5.3 8.2l2 2 3.6-4.2",
  agent: "M4 6h8v6.5H4zM8 6V3.5M6.3 8.8v1M9.7 8.8v1M2.3 8.5v2M13.7 8.5v2",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  folder: "M2 4h4l1.5 1.5H14v7H2z",
  members: "M6 8a2.2 2.2 0 1 0 0-4.4A2.2 2.2 0 0 0 6 8M2.3 13c.3-2.4 1.7-3.6 3.7-3.6s3.4 1.2 3.7 3.6M10.5 7.8a1.9 1.9 0 1 0 0-3.8M11.3 9.6c1.5.3 2.3 1.4 2.5 3.4",
  run: "M4.5 3l8 5-8 5z",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9M10.3 10.3l3.2 3.2",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.5l3.2 3.2L13 5",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4L6 8l4 4",
  upload: "M8 10.5V3M5 6l3-3 3 3M3 12.8h10",
  download: "M8 3v7.5M5 7.5l3 3 3-3M3 12.8h10",
  copy: "M5.5 5.5h8v8h-8zM3 10.5H2.5v-8h8V3",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  help: "M6 6.2a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.5M8 11.6v.1",
  person: "M8 8a2.6 2.6 0 1 0 0-5.2A2.6 2.6 0 0 0 8 8M3.2 13.4c.4-2.6 2.2-3.9 4.8-3.9s4.4 1.3 4.8 3.9",
  stop: "M4.5 4.5h7v7h-7z",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  diff: "M8 2.5v6M5 5.5h6M5 12.5h6",
} as const

export type IconName = keyof typeof paths

export function Icon({ name, className = "" }: { name: IconName; className?: string }) {
  return (
    <svg aria-hidden="true" viewBox="0 0 16 16" className={`size-4 shrink-0 ${className}`} fill="none" stroke="currentColor" strokeWidth={name === "more" ? 2 : 1.4} strokeLinecap="round" strokeLinejoin="round">
      <path d={paths[name]} />
    </svg>
  )
}
