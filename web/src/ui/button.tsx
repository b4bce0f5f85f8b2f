import type { ButtonHTMLAttributes, ReactNode, Ref } from "react"

const look = {
  primary: "bg-accent text-on-accent border-transparent hover:opacity-90",
  plain: "bg-surface border-edge hover:bg-hover",
  quiet: "border-transparent hover:bg-hover",
  danger: "bg-surface border-bad text-bad hover:bg-bad-soft",
}

/** How a button looks, for links that are one. */
export const buttonClass = (kind: keyof typeof look = "plain") =>
  `inline-flex h-8 shrink-0 items-center justify-center gap-1.5 rounded-md border px-3 text-sm font-medium whitespace-nowrap disabled:opacity-50 ${look[kind]}`

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { kind?: keyof typeof look; busy?: boolean; ref?: Ref<HTMLButtonElement> }

/** A button. While busy it cannot be pressed again, and keeps its place and focus. */
export function Button({ kind, busy, className = "", type = "button", onClick, ...rest }: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      onClick={busy ? (e) => e.preventDefault() : onClick}
      className={`${buttonClass(kind)} ${busy ? "opacity-60" : ""} ${className}`}
    />
  )
}

type IconButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { label: string; children: ReactNode; ref?: Ref<HTMLButtonElement> }

/** A button that shows only a picture; its label is read out and shown on hover. */
export function IconButton({ label, className = "", type = "button", ...rest }: IconButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      aria-label={label}
      title={label}
      className={`inline-flex size-8 shrink-0 items-center justify-center rounded-md text-muted hover:bg-hover hover:text-text disabled:opacity-50 ${className}`}
    />
  )
}
