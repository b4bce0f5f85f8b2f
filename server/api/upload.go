package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"cairn/db"
	"cairn/db/read"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/file"
	"cairn/domain/space"
)

// What an upload may take beside its contents: the header of each part, and time.
const (
	uploadBody = file.MaxBytes + file.MaxFiles*2048
	uploadTime = 10 * time.Minute
)

// FilesUploaded are the files of an upload in its order.
type FilesUploaded struct {
	Files []UploadedFile `json:"files" nullable:"false"`
}

// UploadedFile is one of them.
type UploadedFile struct {
	ID      event.ID `json:"file_id" format:"uuid"`
	Path    string   `json:"path"`
	Size    int64    `json:"size"`
	SHA256  string   `json:"sha256"`
	Version int64    `json:"version" doc:"Unchanged when the path had this content already."`
}

type uploadIn struct {
	Keyed
	Space event.ID `path:"space" format:"uuid"`
}

var uploadPath = regexp.MustCompile(`^` + Prefix + `/spaces/[^/]+/files$`)

// isUpload is for requests whose body its route reads, piece by piece.
func isUpload(r *http.Request) bool {
	return r.Method == http.MethodPost && callOf(r.Context()).session != nil && uploadPath.MatchString(r.URL.Path)
}

func (a *API) uploadRoute() {
	op := withStatus(route("POST /spaces/{space}/files", "file-upload", "Store files"), http.StatusCreated)
	op.Description = fmt.Sprintf("multipart/form-data with a part `file` for each; its filename is the path in the space, folders allowed. All are stored or none. "+
		"At most %d files and %d bytes at once.", file.MaxFiles, file.MaxBytes)
	register(a, op, a.upload)
	// Described only now: huma would read a body that it knows of into memory.
	a.Document().Paths[op.Path].Post.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: &huma.Schema{
		Type: huma.TypeObject, Required: []string{"file"},
		Properties: map[string]*huma.Schema{"file": {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
	}}}}
}

func (a *API) upload(ctx context.Context, in *uploadIn) (*answer[FilesUploaded], error) {
	body := callOf(ctx).request.Body
	u := &uploading{API: a, ctx: ctx, space: in.Space}
	out, err := u.run(in, body)
	if err != nil {
		_, _ = io.Copy(io.Discard, body) // bounded: else many clients never read the refusal
		return nil, err
	}
	return reply(*out), nil
}

// uploading is one upload: contents go to the blob store as they come, and what was stored in vain is dropped.
type uploading struct {
	*API
	ctx   context.Context
	space event.ID
	files []file.Upload
	total int64
}

func (u *uploading) run(in *uploadIn, body io.Reader) (*FilesUploaded, error) {
	if err := u.mayWork(u.ctx, u.space); err != nil {
		return nil, err
	}
	if err := u.receive(body); err != nil {
		u.drop(func(file.Upload) bool { return true })
		return nil, err
	}
	out, err := u.store(in)
	if err != nil && fault.KindOf(err) != "" && !fault.Is(err, fault.Unavailable) { // else it may have been appended
		u.drop(func(file.Upload) bool { return true })
	}
	return out, err
}

// mayWork refuses whoever could not do anything here before work is done for them.
func (a *API) mayWork(ctx context.Context, id event.ID) error {
	if err := a.space(ctx, id); err != nil {
		return err
	}
	state, _, err := a.DB.Load(ctx, space.Stream(id))
	if err != nil {
		return err
	}
	folded, _ := state.(space.State)
	return space.Require(folded, event.AccountActor(account(ctx)), space.Doers...)
}

// receive reads the parts.
func (u *uploading) receive(body io.Reader) error {
	kind, params, err := mime.ParseMediaType(callOf(u.ctx).request.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return newProblem(u.ctx, http.StatusUnsupportedMediaType, "", "Files come as multipart/form-data, one part named file for each.")
	}
	reader := multipart.NewReader(body, params["boundary"])
	seen := map[string]bool{}
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return bodyProblem(u.ctx, err)
		}
		if err := u.part(part, seen); err != nil {
			return err
		}
	}
	if len(u.files) == 0 {
		return fault.Field("file", "no file in the upload: send at least one part named file")
	}
	return nil
}

func (u *uploading) part(part *multipart.Part, seen map[string]bool) error {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if name, is := params["filename"]; err != nil || params["name"] != "file" || !is || name == "" {
		return fault.Field("file", "part %d is not named file, or has no filename that is its path: send nothing else", len(u.files)+1)
	}
	path := params["filename"]
	if err := file.CheckPath("file", path); err != nil {
		return err
	}
	if seen[path] {
		return fault.Field("file", "%.120q is in the upload twice: send each path once", path)
	}
	if seen[path] = true; len(seen) > file.MaxFiles {
		return fault.Field("file", "more than %d files in one upload: divide it", file.MaxFiles)
	}
	stored, err := u.DB.StoreContent(u.ctx, u.space, part, file.MaxBytes-u.total)
	switch {
	case errors.Is(err, db.ErrTooLarge):
		return newProblem(u.ctx, http.StatusRequestEntityTooLarge, "", fmt.Sprintf("The files have more than %d bytes together: divide the upload, or leave large files out.", file.MaxBytes))
	case err != nil && fault.KindOf(err) == "":
		return bodyProblem(u.ctx, err)
	case err != nil:
		return err
	}
	u.total += stored.Content.Size
	mediaType, _, _ := strings.Cut(http.DetectContentType(stored.Head), ";")
	upload := file.Upload{
		Path: path, MAC: u.mac(path), Digest: stored.Digest, Content: stored.Content, MediaType: mediaType, Executable: strings.HasPrefix(string(stored.Head), "#!"),
	}
	for _, folder := range file.Parents(path) {
		upload.Parents = append(upload.Parents, u.mac(folder))
	}
	u.files = append(u.files, upload)
	return nil
}

func (u *uploading) mac(path string) []byte { return u.DB.Keys().ClaimMAC("file", path) }

// store appends them, all or none.
func (u *uploading) store(in *uploadIn) (*FilesUploaded, error) {
	type named struct{ Path, SHA256 string }
	var request struct {
		Space event.ID
		Files []named
	}
	paths := make([]string, len(u.files))
	for i, f := range u.files {
		paths[i] = f.Path
		request.Files = append(request.Files, named{f.Path, f.Digest})
	}
	request.Space = u.space
	folders, err := u.DB.Read().FileFolderAmong(u.ctx, read.FileFolderAmongParams{SpaceID: u.space, Paths: paths})
	if err != nil {
		return nil, fmt.Errorf("folders of space %s: %w", u.space, err)
	}
	if len(folders) > 0 {
		return nil, fault.New(fault.Conflict, "file_clash", "%.120q is a folder here: remove the files below it first, or choose another path", folders[0])
	}
	result, err := u.execute(u.ctx, file.Store{Space: u.space, Files: u.files}, in.IdempotencyKey, request)
	if err != nil {
		return nil, err
	}
	return u.answer(result)
}

func (u *uploading) answer(result db.Result) (*FilesUploaded, error) {
	appended := map[event.ID]int64{}
	for _, r := range result.Records {
		appended[r.StreamID] = r.Version
	}
	u.drop(func(f file.Upload) bool { return appended[file.Stream(u.space, f.MAC).ID] == 0 })
	out := &FilesUploaded{}
	for _, f := range u.files {
		stream := file.Stream(u.space, f.MAC)
		version := appended[stream.ID]
		if version == 0 { // it was there already
			var err error
			if _, version, err = u.DB.Load(u.ctx, stream); err != nil {
				return nil, err
			}
		}
		out.Files = append(out.Files, UploadedFile{ID: stream.ID, Path: f.Path, Size: f.Content.Size, SHA256: f.Digest, Version: version})
	}
	return out, nil
}

// drop removes contents that nothing refers to.
func (u *uploading) drop(vain func(file.Upload) bool) {
	for _, f := range u.files {
		if !vain(f) {
			continue
		}
		if err := u.DB.DropContent(f.Content); err != nil {
			u.Log.WarnContext(u.ctx, "content of a refused upload is left", "blob", f.Content.Blob, "error", err)
		}
	}
}
