package api

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"cairn/db/read"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/file"
	"cairn/domain/run"
)

// SourceIn is what a workspace is to begin with.
type SourceIn struct {
	Kind   string `json:"kind" enum:"none,files,folder"`
	Folder string `json:"folder,omitempty" maxLength:"1024" doc:"Of kind files: a folder of the space, which becomes the workspace's root; all files unless given."`
	Root   string `json:"root,omitempty" maxLength:"64" doc:"Of kind folder: one of GET /spaces/{space}/sources."`
	Path   string `json:"path,omitempty" maxLength:"4096" doc:"Of kind folder: a folder below the root; the root itself unless given."`
}

// Source is what a workspace begins with. Only the fields of its kind are not null.
type Source struct {
	Kind     string  `json:"kind" enum:"none,files,folder"`
	Folder   *string `json:"folder"`
	Files    *int64  `json:"files" doc:"How many."`
	Bytes    *int64  `json:"bytes" doc:"Of all files together."`
	Manifest *string `json:"manifest" doc:"Names the list of files that was pinned: the same list of a space has the same name."`
	Root     *string `json:"root"`
	Path     *string `json:"path" doc:"null also where the root does not offer it by a relative path."`
}

// maxFolders bounds the folders that the list of sources has.
const maxFolders = 1000

func (a *API) sourceRoutes() {
	list := route("GET /spaces/{space}/sources", "source-list", "What a workspace may begin with")
	list.Description = "Nothing, the files of the space or a folder of them, and the folders that the operator offers. One page."
	register(a, list, a.sources)
}

type spaceIn struct {
	Space event.ID `path:"space" format:"uuid"`
}

func (a *API) sources(ctx context.Context, in *spaceIn) (*answer[List[Source]], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	rows, err := a.DB.Read().FileFolders(ctx, read.FileFoldersParams{SpaceID: in.Space, Lim: maxFolders + 1})
	if err != nil {
		return nil, fmt.Errorf("folders of space %s: %w", in.Space, err)
	}
	out := List[Source]{Items: []Source{{Kind: run.SourceNone}}}
	if len(rows) == 0 {
		rows = []read.FileFoldersRow{{}} // the whole space, which has no file
	}
	for i := range rows {
		out.Items = append(out.Items, Source{Kind: run.SourceFiles, Folder: &rows[i].Folder, Files: &rows[i].Files, Bytes: &rows[i].Bytes})
	}
	for i := range a.Roots {
		whole := ""
		out.Items = append(out.Items, Source{Kind: run.SourceFolder, Root: &a.Roots[i], Path: &whole})
	}
	return reply(out), nil
}

// source is what a command carries for what the caller chose: files are pinned here, by a list of them as they are
// at this moment. Every route that opens something with a workspace asks this.
func (a *API) source(ctx context.Context, space event.ID, in *SourceIn) (run.Source, error) {
	if in == nil {
		return run.Source{Kind: run.SourceNone}, nil
	}
	if err := in.check(); err != nil {
		return run.Source{}, err
	}
	switch in.Kind {
	case run.SourceFiles:
		files, err := a.pin(ctx, space, in.Folder)
		return run.Source{Kind: in.Kind, Files: files}, err
	case run.SourceFolder:
		if !slices.Contains(a.Roots, in.Root) {
			return run.Source{}, fault.Field("source.root", "%.64q is not a root that this server offers, there are %q: choose one of them, or ask the operator for --root %.64s=FOLDER on servers and workers", in.Root, a.Roots, in.Root)
		}
		return run.Source{Kind: in.Kind, Root: in.Root, Path: in.Path}, nil
	}
	return run.Source{Kind: run.SourceNone}, nil
}

// check refuses what does not belong to the kind, and a path that leads out of its root.
func (in *SourceIn) check() error {
	switch {
	case in.Kind != run.SourceFiles && in.Folder != "":
		return fault.Field("source.folder", "a source of kind %s has no folder: leave it out, or use kind files", in.Kind)
	case in.Kind != run.SourceFolder && (in.Root != "" || in.Path != ""):
		return fault.Field("source.root", "a source of kind %s has no root and no path: leave them out, or use kind folder", in.Kind)
	case path.IsAbs(in.Path):
		return fault.Field("source.path", "it is absolute: give a folder below the root")
	}
	if in.Kind == run.SourceFiles {
		return file.CheckFolder("source.folder", in.Folder)
	}
	return nil
}

// pin stores the list of the files below a folder.
func (a *API) pin(ctx context.Context, space event.ID, folder string) (run.Files, error) {
	if err := a.mayWork(ctx, space); err != nil {
		return run.Files{}, err
	}
	rows, err := a.DB.Read().FileBelow(ctx, read.FileBelowParams{SpaceID: space, Folder: folder, Lim: file.MaxManifestFiles + 1})
	if err != nil {
		return run.Files{}, fmt.Errorf("files of space %s: %w", space, err)
	}
	if len(rows) == 0 && folder != "" {
		return run.Files{}, fault.Field("source.folder", "%.120q has no files: upload some, or choose another folder of GET /spaces/{space}/sources", folder)
	}
	manifest := file.Manifest{Files: make([]file.Entry, 0, len(rows))}
	for _, r := range rows {
		if r.Path == nil || r.Sha256 == nil {
			return run.Files{}, fault.New(fault.NotFound, "content_erased", "files of this space were erased: they are gone for good")
		}
		below := *r.Path
		if folder != "" {
			below = strings.TrimPrefix(below, folder+"/")
		}
		manifest.Files = append(manifest.Files, file.Entry{Path: below, Digest: *r.Sha256, Content: event.Content{Key: space, Blob: r.Blob, Size: r.Size}, Executable: r.Executable})
	}
	raw, err := manifest.Encode(space)
	if err != nil {
		return run.Files{}, err
	}
	stored, err := a.DB.StoreSame(ctx, space, raw)
	if err != nil {
		return run.Files{}, err
	}
	files := run.Files{Manifest: stored.Content, Count: int64(len(rows)), Bytes: manifest.Bytes()}
	if folder != "" {
		files.Folder = event.Seal(folder)
	}
	return files, nil
}
