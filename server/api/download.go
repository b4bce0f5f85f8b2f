package api

import (
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"cairn/db/read"
	"cairn/domain/event"
	"cairn/domain/fault"
)

type downloadIn struct {
	OneFile
	IfNoneMatch string `header:"If-None-Match" maxLength:"200"`
}

func (a *API) downloadRoute() {
	op := route("GET /files/{file}/content", "file-content", "The content of a file")
	op.Description = "As an attachment. The ETag is the SHA-256 of the content."
	op.Responses = map[string]*huma.Response{
		"200": {Description: "The content.", Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}},
		"304": {Description: "It is what the caller has."},
	}
	register(a, op, a.download)
}

// download sends bytes that somebody else brought: nothing may take them for a page of this server.
func (a *API) download(ctx context.Context, in *downloadIn) (*huma.StreamResponse, error) {
	row, err := a.file(ctx, in.File)
	if err != nil {
		return nil, err
	}
	if row.Path == nil || row.Sha256 == nil {
		return nil, fault.New(fault.NotFound, "content_erased", "the content of file %s was erased: it is gone for good", row.ID)
	}
	content, err := a.DB.OpenContent(ctx, row.SpaceID, event.Content{Key: row.SpaceID, Blob: row.Blob, Size: row.Size})
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer content.Close()
		attach(hc, row)
		if in.IfNoneMatch == etag(row) {
			hc.SetStatus(http.StatusNotModified)
			return
		}
		hc.SetHeader("Content-Length", strconv.FormatInt(row.Size, 10))
		hc.SetStatus(http.StatusOK)
		if _, err := io.Copy(hc.BodyWriter(), content); err != nil {
			c := callOf(ctx)
			c.log.WarnContext(ctx, "download broke off", "request_id", c.id, "file", row.ID, "error", err)
			panic(http.ErrAbortHandler) // the reader must not take a part for the whole
		}
	}}, nil
}

func etag(row read.File) string { return `"` + *row.Sha256 + `"` }

func attach(hc huma.Context, row read.File) {
	hc.SetHeader("Content-Type", row.MediaType)
	hc.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(*row.Path)}))
	hc.SetHeader("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	hc.SetHeader("Cache-Control", "private, no-cache")
	hc.SetHeader("ETag", etag(row))
}
