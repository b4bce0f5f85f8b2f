package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed document.html
var documentPage string

//go:embed document.css
var documentStyle []byte

// serveDocument puts the OpenAPI document and its page on the mux. Both are made once; the page needs no script
// and nothing from other hosts.
func (a *API) serveDocument() error {
	document, err := json.Marshal(a.Document())
	if err != nil {
		return fmt.Errorf("OpenAPI document: %w", err)
	}
	parsed, err := template.New("document").Parse(documentPage)
	if err != nil {
		return fmt.Errorf("page of the OpenAPI document: %w", err)
	}
	var html bytes.Buffer
	if err := parsed.Execute(&html, map[string]any{"Info": a.Document().Info, "Operations": operations(a.Document())}); err != nil {
		return fmt.Errorf("page of the OpenAPI document: %w", err)
	}
	a.serve("/openapi.json", "application/openapi+json", "", document)
	a.serve("/docs", "text/html; charset=utf-8", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", html.Bytes())
	a.serve("/docs/style.css", "text/css; charset=utf-8", "", documentStyle)
	return nil
}

func (a *API) serve(path, mediaType, policy string, content []byte) {
	a.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		if policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		w.Write(content)
	})
}

// shownOperation is what the page tells of one.
type shownOperation struct {
	*huma.Operation
	Answers []string
	Body    string
}

// operations are in the order of their paths.
func operations(document *huma.OpenAPI) []shownOperation {
	var all []shownOperation
	for _, item := range document.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
			if op != nil {
				all = append(all, shown(document, op))
			}
		}
	}
	slices.SortFunc(all, func(x, y shownOperation) int {
		return strings.Compare(x.Path+" "+x.Method, y.Path+" "+y.Method)
	})
	return all
}

func shown(document *huma.OpenAPI, op *huma.Operation) shownOperation {
	s := shownOperation{Operation: op}
	for status := range op.Responses {
		s.Answers = append(s.Answers, status)
	}
	slices.Sort(s.Answers)
	for _, body := range bodies(op) {
		schema := body.Schema
		if schema.Ref != "" {
			schema = document.Components.Schemas.SchemaFromRef(schema.Ref)
		}
		// A schema is made of texts, numbers and maps: it cannot fail to encode.
		text, _ := json.MarshalIndent(schema, "", "  ")
		s.Body = string(text)
	}
	return s
}

// bodies is how the request body is described: in one way, or there is none.
func bodies(op *huma.Operation) []*huma.MediaType {
	if op.RequestBody == nil {
		return nil
	}
	return slices.Collect(maps.Values(op.RequestBody.Content))
}
