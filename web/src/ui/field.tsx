import { type InputHTMLAttributes, type ReactNode, type Ref, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from "react"

const box = "w-full rounded-md border border-edge bg-surface px-2.5 text-base disabled:opacity-60 aria-invalid:border-bad"

type Told = { label: string; hint?: ReactNode; error?: string | undefined }

/** A label, what is filled in, and under it what is wrong with it, or a hint. */
function Labelled({ id, label, hint, error, children }: Told & { id: string; children: ReactNode }) {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children}
      {(error ?? hint) && (
        <p id={`${id}-told`} className={`text-sm ${error ? "text-bad" : "text-muted"}`}>
          {error ?? hint}
        </p>
      )}
    </div>
  )
}

const described = (id: string, { hint, error }: Omit<Told, "label">) => ({
  id,
  "aria-describedby": (error ?? hint) ? `${id}-told` : undefined,
  "aria-invalid": error ? (true as const) : undefined,
})

export function TextField({ label, hint, error, ...rest }: Told & InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint} error={error}>
      <input {...rest} {...described(id, { hint, error })} className={`${box} h-9`} />
    </Labelled>
  )
}

export function TextArea({ label, hint, error, rows = 5, ...rest }: Told & TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }) {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint} error={error}>
      <textarea {...rest} rows={rows} {...described(id, { hint, error })} className={`${box} py-2`} />
    </Labelled>
  )
}

export function SelectField({ label, hint, error, ...rest }: Told & SelectHTMLAttributes<HTMLSelectElement>) {
  const id = useId()
  return (
    <Labelled id={id} label={label} hint={hint} error={error}>
      <select {...rest} {...described(id, { hint, error })} className={`${box} h-9`} />
    </Labelled>
  )
}

export function CheckField({ label, hint, ...rest }: { label: string; hint?: string } & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId()
  return (
    <div className="flex min-h-6 items-start gap-2">
      <input {...rest} type="checkbox" id={id} aria-describedby={hint ? `${id}-told` : undefined} className="mt-1 size-4 shrink-0 accent-accent" />
      <div className="min-w-0">
        <label htmlFor={id} className="text-sm">
          {label}
        </label>
        {hint && (
          <p id={`${id}-told`} className="text-sm text-muted">
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}

/** A box without a visible label, for tool bars: the label is read out. */
export function SearchBox({ label, className = "", ...rest }: { label: string } & InputHTMLAttributes<HTMLInputElement>) {
  return <input {...rest} type="search" aria-label={label} placeholder={label} className={`h-8 min-w-0 rounded-md border border-edge bg-surface px-2.5 text-sm ${className}`} />
}

export function SelectBox({ label, className = "", ...rest }: { label: string } & SelectHTMLAttributes<HTMLSelectElement>) {
  return <select {...rest} aria-label={label} className={`h-8 min-w-0 rounded-md border border-edge bg-surface px-2 text-sm ${className}`} />
}
