// Package portal hands out the built Portal: its page, and the files that the page names.
//
//	GET path -> a file of the build? -> the file, in the smallest form that the browser takes
//	         -> a navigation?        -> index.html: the page finds out by itself what is at the path
//	         -> else                 -> not ours: whoever asks for data gets the problem document
//
// Files under assets/ have the hash of their content in their names and are kept for ever; the page itself is never kept.
// The page may run and show only what this server sends: no inline script, no inline style, nothing from other hosts.
//
// It may import the standard library only.
package portal

import (
	_ "embed"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// policy is what the page may load: all of it from here, nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

//go:embed absent.html
var absent []byte

// Portal answers navigations and the files of the build.
type Portal struct {
	files map[string]file
}

// file is one of the build. A form that is empty was not made, since it would not be smaller.
type file struct {
	mediaType           string
	plain, gzip, brotli []byte
}

// New reads the build; it may be empty, then every navigation says how to make one.
func New(dist fs.FS) (*Portal, error) {
	p := &Portal{files: map[string]file{}}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || packed(name) || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		f := file{mediaType: mediaType(name)}
		if f.plain, err = fs.ReadFile(dist, name); err != nil {
			return err
		}
		// Forms that are not there stay empty.
		f.gzip, _ = fs.ReadFile(dist, name+".gz")
		f.brotli, _ = fs.ReadFile(dist, name+".br")
		p.files[name] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("build of the Portal: %w", err)
	}
	return p, nil
}

func packed(name string) bool {
	return strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".br")
}

func mediaType(name string) string {
	switch path.Ext(name) {
	case ".js": // what the system's table says about it differs
		return "text/javascript; charset=utf-8"
	case ".json":
		return "application/json"
	}
	if known := mime.TypeByExtension(path.Ext(name)); known != "" {
		return known
	}
	return "application/octet-stream"
}

// Wants reports whether the Portal answers the request; else it belongs to the interface for programs.
func (p *Portal) Wants(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if _, ok := p.files[name(r)]; ok || r.URL.Path == "/" {
		return true
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !program(r.URL.Path)
}

// program reports whether a path is one where no page can be.
func program(path string) bool {
	for _, prefix := range []string{"/api/", "/gateway/", "/assets/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

func name(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }

const page = "index.html"

// ServeHTTP implements http.Handler, for requests that Wants took.
func (p *Portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	secure(h, r)
	asked := name(r)
	f, ok := p.files[asked]
	if !ok {
		asked = page
		f, ok = p.files[asked]
	}
	if !ok {
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write(absent)
		return
	}
	h.Set("Cache-Control", keep(asked))
	h.Set("Content-Type", f.mediaType)
	h.Add("Vary", "Accept-Encoding")
	if asked == page {
		h.Add("Vary", "Accept")
	}
	body := f.choose(h, r.Header.Get("Accept-Encoding"))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// keep says how long a browser may keep a file.
func keep(name string) string {
	if strings.HasPrefix(name, "assets/") {
		return "public, max-age=31536000, immutable"
	}
	return "no-store"
}

// choose takes the smallest form that the browser understands.
func (f file) choose(h http.Header, accepted string) []byte {
	for _, form := range []struct {
		name string
		body []byte
	}{{"br", f.brotli}, {"gzip", f.gzip}} {
		if len(form.body) > 0 && accepts(accepted, form.name) {
			h.Set("Content-Encoding", form.name)
			return form.body
		}
	}
	return f.plain
}

// accepts reads Accept-Encoding (RFC 9110, 12.5.3). A wildcard counts for nothing: the plain form is always right.
func accepts(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			_, q, given := strings.Cut(strings.ReplaceAll(weight, " ", ""), "q=")
			value, err := strconv.ParseFloat(q, 64)
			return !given || err == nil && value > 0
		}
	}
	return false
}

// secure sets what a browser should hold against the page.
func secure(h http.Header, r *http.Request) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}
