import { useQuery } from "@tanstack/react-query"
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import { type DragEvent, type ReactNode, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { useSend } from "../api/query"
import { useFormat } from "../i18n/format"
import { useSpace } from "../space/scope"
import { mayWork, spaceName } from "../space/space"
import { Button, IconButton } from "../ui/button"
import { Confirm } from "../ui/dialog"
import { Icon } from "../ui/icon"
import { rowClass, rowLinkClass, Rows } from "../ui/list"
import { Empty, Loaded, PageHead, ToolBar } from "../ui/page"
import { SearchQuery } from "../ui/search"
import { filesChanged, filesQuery, mostShown, removeFile, type StoredFile } from "./query"
import { inFolder } from "./tree"
import { ofDrop, ofPicker } from "./upload"
import { Uploading, useUpload } from "./uploading"

const route = getRouteApi("/app/s/$space/files")

export function FileList() {
  const { t } = useTranslation()
  const space = useSpace()
  const { folder = "", q } = route.useSearch()
  const navigate = useNavigate({ from: "/s/$space/files" })
  const query = useQuery(filesQuery(space.space_id, folder, q))
  const uploads = useUpload(space.space_id)
  const [removing, setRemoving] = useState<StoredFile | null>(null)
  const may = mayWork(space)
  const pick = may && <Pickers folder={folder} onPick={uploads.start} />
  const empty = query.data?.files.length === 0
  return (
    <DropZone enabled={may} onDrop={async (transfer) => uploads.start(await ofDrop(transfer, folder))}>
      <PageHead title={t("file.title")} above={folder !== "" && <Crumbs folder={folder} />}>
        {!empty || folder || q ? pick : null}
      </PageHead>
      <ToolBar>
        <SearchQuery label={t("file.search")} value={q} onSearch={(next) => void navigate({ search: (s) => ({ ...s, q: next }), replace: true })} />
      </ToolBar>
      <Uploading {...uploads} />
      <Loaded of={query}>
        {empty ? (
          q || folder ? (
            <p className="px-4 py-8 text-center text-muted sm:px-6">{q ? t("ui.nothing_found") : t("file.empty_folder")}</p>
          ) : (
            <Empty icon="file" title={t("file.none.title")} action={pick || undefined}>
              {t("file.none.about")}
            </Empty>
          )
        ) : (
          query.data && <Listing all={query.data.files} folder={folder} flat={q !== undefined} onRemove={may ? setRemoving : undefined} />
        )}
        {query.data?.more && <p className="px-4 py-3 text-sm text-muted sm:px-6">{t("file.more", { count: mostShown })}</p>}
      </Loaded>
      <Remove file={removing} onClose={() => setRemoving(null)} />
    </DropZone>
  )
}

/** Files may be dropped anywhere on the page. */
function DropZone({ enabled, onDrop, children }: { enabled: boolean; onDrop: (transfer: DataTransfer) => Promise<void>; children: ReactNode }) {
  const { t } = useTranslation()
  const [over, setOver] = useState(false)
  const depth = useRef(0)
  const enter = (e: DragEvent, by: number) => {
    if (!enabled || !e.dataTransfer.types.includes("Files")) return
    e.preventDefault()
    depth.current += by
    setOver(depth.current > 0)
  }
  const drop = (e: DragEvent) => {
    if (!enabled) return
    e.preventDefault()
    depth.current = 0
    setOver(false)
    void onDrop(e.dataTransfer)
  }
  return (
    <div className="relative min-h-full" onDragEnter={(e) => enter(e, 1)} onDragLeave={(e) => enter(e, -1)} onDragOver={(e) => enter(e, 0)} onDrop={drop}>
      {children}
      {over && <p className="pointer-events-none absolute inset-2 flex items-center justify-center rounded-lg border-2 border-dashed border-accent bg-accent-soft text-lg font-medium text-accent">{t("file.drop")}</p>}
    </div>
  )
}

function Pickers({ folder, onPick }: { folder: string; onPick: (picked: ReturnType<typeof ofPicker>) => void }) {
  const { t } = useTranslation()
  const [files, directory] = [useRef<HTMLInputElement>(null), useRef<HTMLInputElement>(null)]
  const take = (input: HTMLInputElement) => {
    onPick(ofPicker(input.files, folder))
    input.value = ""
  }
  return (
    <div className="flex flex-wrap gap-2">
      <input ref={files} type="file" multiple hidden aria-label={t("file.upload_files")} onChange={(e) => take(e.target)} />
      <input ref={directory} type="file" hidden aria-label={t("file.upload_folder")} {...{ webkitdirectory: "" }} onChange={(e) => take(e.target)} />
      <Button onClick={() => directory.current?.click()}>
        <Icon name="folder" />
        {t("file.upload_folder")}
      </Button>
      <Button kind="primary" onClick={() => files.current?.click()}>
        <Icon name="upload" />
        {t("file.upload_files")}
      </Button>
    </div>
  )
}

function Crumbs({ folder }: { folder: string }) {
  const { t } = useTranslation()
  const space = useSpace()
  const parts = folder.split("/")
  const link = "hover:underline"
  return (
    <nav aria-label={t("file.folders")} className="flex flex-wrap items-center gap-1 text-sm text-muted">
      <Link to="/s/$space/files" params={{ space: spaceName(space) }} className={link}>
        {t("file.title")}
      </Link>
      {parts.map((part, i) => (
        <span key={i} className="flex items-center gap-1">
          <Icon name="right" className="size-3" />
          {i === parts.length - 1 ? (
            <span className="text-text">{part}</span>
          ) : (
            <Link to="/s/$space/files" params={{ space: spaceName(space) }} search={{ folder: parts.slice(0, i + 1).join("/") }} className={link}>
              {part}
            </Link>
          )}
        </span>
      ))}
    </nav>
  )
}

/** A folder's folders and files; what a search finds is a flat list of paths. */
function Listing({ all, folder, flat, onRemove }: { all: StoredFile[]; folder: string; flat: boolean; onRemove?: ((file: StoredFile) => void) | undefined }) {
  const { t, i18n } = useTranslation()
  const format = useFormat()
  const space = useSpace()
  const shown = flat ? { folders: [], files: all } : inFolder(all, folder, i18n.language)
  return (
    <Rows label={t("file.title")}>
      {shown.folders.map((f) => (
        <li key={f.name} className={rowClass}>
          <Icon name="folder" className="text-accent" />
          <Link data-row to="/s/$space/files" params={{ space: spaceName(space) }} search={{ folder: folder ? `${folder}/${f.name}` : f.name }} className={rowLinkClass}>
            {f.name}
          </Link>
          <span className="ml-auto text-xs whitespace-nowrap text-muted">
            {t("file.count", { count: f.files })}
            {" · "}
            {format.bytes(f.bytes)}
          </span>
        </li>
      ))}
      {shown.files.map((f) => (
        <FileRow key={f.file_id} file={f} name={flat ? f.path : (f.path?.slice(folder ? folder.length + 1 : 0) ?? null)} onRemove={onRemove} />
      ))}
    </Rows>
  )
}

function FileRow({ file, name, onRemove }: { file: StoredFile; name: string | null; onRemove?: ((file: StoredFile) => void) | undefined }) {
  const { t } = useTranslation()
  const format = useFormat()
  const shown = name ?? t("ui.erased")
  return (
    <li className={`${rowClass} [content-visibility:auto] [contain-intrinsic-size:auto_2.75rem]`}>
      <Icon name="file" className="text-muted" />
      <a data-row href={`/api/v1/files/${file.file_id}/content`} download={name?.split("/").at(-1) ?? ""} className={rowLinkClass} title={t("file.download", { name: shown })}>
        {shown}
      </a>
      <span className="ml-auto text-xs whitespace-nowrap text-muted">{format.bytes(file.size)}</span>
      <time dateTime={file.stored_at} title={format.dateTime(file.stored_at)} className="hidden w-20 text-right text-xs whitespace-nowrap text-muted sm:inline">
        {format.ago(file.stored_at)}
      </time>
      {onRemove && (
        <IconButton label={t("file.remove", { name: shown })} className="relative z-1" onClick={() => onRemove(file)}>
          <Icon name="trash" />
        </IconButton>
      )}
    </li>
  )
}

function Remove({ file, onClose }: { file: StoredFile | null; onClose: () => void }) {
  const { t } = useTranslation()
  const space = useSpace()
  const { send, sending, problem, reset } = useSend(
    (id: string) => removeFile(id),
    async () => {
      close()
      await filesChanged(space.space_id)
    },
  )
  const close = () => {
    reset()
    onClose()
  }
  return (
    <Confirm open={file !== null} onClose={close} title={t("file.remove_title")} action={t("file.remove_action")} onConfirm={() => file && send(file.file_id)} busy={sending} problem={problem}>
      <p className="break-words">{t("file.remove_about", { name: file?.path ?? t("ui.erased") })}</p>
    </Confirm>
  )
}
