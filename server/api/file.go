package api

import (
	"context"
	"fmt"
	"time"

	"cairn/db/read"
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/file"
)

// File is a file of a space.
type File struct {
	ID        event.ID  `json:"file_id" format:"uuid"`
	Space     event.ID  `json:"space_id" format:"uuid"`
	Path      *string   `json:"path" doc:"Relative, with / between folders."`
	Size      int64     `json:"size" doc:"Bytes."`
	MediaType string    `json:"media_type" doc:"As the content looks."`
	SHA256    *string   `json:"sha256" doc:"Of the content, hexadecimal."`
	StoredBy  string    `json:"stored_by" doc:"The actor, like account/ID."`
	StoredAt  time.Time `json:"stored_at"`
	Version   int64     `json:"version"`
}

// OneFile is the path of one.
type OneFile struct {
	File event.ID `path:"file" format:"uuid"`
}

type filesIn struct {
	InSpace
	Folder string `query:"folder" maxLength:"1024" doc:"Only files below this folder, at any depth."`
	Text   string `query:"q" maxLength:"200" doc:"Only files whose path holds this, in any case."`
}

func (a *API) fileRoutes() {
	list := route("GET /spaces/{space}/files", "file-list", "Files of a space")
	list.Description = "The last stored first."
	register(a, list, a.files)
	a.uploadRoute()
	register(a, route("GET /files/{file}", "file-get", "A file, without its content"), a.getFile)
	a.downloadRoute()
	remove := route("DELETE /files/{file}", "file-remove", "Remove a file")
	remove.Description = "Conversations that began with it keep it."
	register(a, remove, a.removeFile)
}

func showFile(r read.File) File {
	return File{
		ID: r.ID, Space: r.SpaceID, Path: r.Path, Size: r.Size, MediaType: r.MediaType, SHA256: r.Sha256, StoredBy: r.StoredBy,
		StoredAt: r.StoredAt.UTC(), Version: r.Version,
	}
}

func (a *API) file(ctx context.Context, id event.ID) (read.File, error) {
	return found(ctx, a, "file", id, a.DB.Read().FileByID, func(r read.File) event.ID { return r.SpaceID })
}

func (a *API) files(ctx context.Context, in *filesIn) (*answer[List[File]], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	if err := check.First(file.CheckFolder("folder", in.Folder), check.Text("q", in.Text, 0, 200)); err != nil {
		return nil, ofQuery(err)
	}
	from, err := in.from("file")
	if err != nil {
		return nil, err
	}
	rows, err := a.DB.Read().FilePage(ctx, read.FilePageParams{SpaceID: in.Space, At: from.at, ID: from.id, Folder: in.Folder, Text: in.Text, Lim: int32(in.Limit + 1)})
	if err != nil {
		return nil, fmt.Errorf("files of space %s: %w", in.Space, err)
	}
	return page("file", in.Limit, rows, showFile, func(r read.File) place { return place{at: r.StoredAt, id: r.ID} }), nil
}

// ofQuery is for a rule that a query parameter broke: it names no place in the body.
func ofQuery(err error) error {
	return fault.New(fault.Invalid, "invalid_field", "%v", err)
}

func (a *API) getFile(ctx context.Context, in *OneFile) (*answer[File], error) {
	row, err := a.file(ctx, in.File)
	if err != nil {
		return nil, err
	}
	return reply(showFile(row)), nil
}

func (a *API) removeFile(ctx context.Context, in *OneFile) (*struct{}, error) {
	row, err := a.file(ctx, in.File)
	if err != nil {
		return nil, err
	}
	_, err = a.execute(ctx, file.Remove{Space: row.SpaceID, File: row.ID}, "", nil)
	return nil, err
}
