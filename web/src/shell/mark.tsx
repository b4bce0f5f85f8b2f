/** The sign of Cairn: three stones, each laid on the last. */
export function Mark({ className = "size-6" }: { className?: string }) {
  return (
    <svg aria-hidden="true" viewBox="0 0 24 24" className={`text-accent ${className}`} fill="currentColor">
      <ellipse cx="12" cy="18.4" rx="9" ry="3.4" />
      <ellipse cx="12.5" cy="11.6" rx="6.2" ry="2.8" />
      <ellipse cx="11.8" cy="5.8" rx="3.6" ry="2.3" />
    </svg>
  )
}
