import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useFormat } from "../i18n/format"
import { SelectField, TextField } from "../ui/field"
import { type Source, type SourceIn, sourcesQuery } from "./query"

const idOf = (s: { kind: string; folder?: string | null; root?: string | null }) => (s.kind === "files" ? `files:${s.folder ?? ""}` : s.kind === "folder" ? `folder:${s.root ?? ""}` : "none")

/** What the agent starts from: nothing, files of the space, or a folder that the operator offers. */
export function SourceField({ space, value, onChange }: { space: string; value: SourceIn; onChange: (source: SourceIn) => void }) {
  const { t } = useTranslation()
  const { data = [] } = useQuery(sourcesQuery(space))
  const name = useSourceName()
  const offered = data.filter((s) => s.kind !== "files" || (s.files ?? 0) > 0)
  const choose = (id: string) => {
    const s = offered.find((one) => idOf(one) === id)
    if (s?.kind === "files") onChange({ kind: "files", folder: s.folder || undefined })
    else if (s?.kind === "folder") onChange({ kind: "folder", root: s.root ?? "" })
    else onChange({ kind: "none" })
  }
  return (
    <div className="flex flex-col gap-4">
      <SelectField label={t("file.source.label")} hint={t(`file.source.about_${value.kind}`)} value={idOf(value)} onChange={(e) => choose(e.target.value)}>
        {data.length === 0 && <option value="none">{t("file.source.none")}</option>}
        {offered.map((s) => (
          <option key={idOf(s)} value={idOf(s)}>
            {name(s)}
          </option>
        ))}
      </SelectField>
      {value.kind === "folder" && <TextField label={t("file.source.path")} hint={t("file.source.path_hint")} maxLength={4096} value={value.path ?? ""} onChange={(e) => onChange({ ...value, path: e.target.value || undefined })} spellCheck={false} />}
    </div>
  )
}

/** A source in words. */
export function useSourceName(): (source: Source) => string {
  const { t } = useTranslation()
  const format = useFormat()
  return (s) => {
    if (s.kind === "folder") return s.path ? t("file.source.folder_path", { root: s.root ?? "", path: s.path }) : t("file.source.folder", { root: s.root ?? "" })
    if (s.kind === "none") return t("file.source.none")
    const what = s.folder ? t("file.source.files_folder", { folder: s.folder }) : t("file.source.files")
    return s.files === null ? what : t("file.source.with_size", { what, files: t("file.count", { count: s.files }), bytes: format.bytes(s.bytes ?? 0) })
  }
}

/** The state of a source field. */
export const useSource = () => useState<SourceIn>({ kind: "none" })
