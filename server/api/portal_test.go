package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"testing"

	"cairn/server/api"
)

var update = flag.Bool("update", false, "write web/src/gen/openapi.json")

// TestPortalDocument holds what the Portal's types are made of against the routes; 'make gen' writes it.
func TestPortalDocument(t *testing.T) {
	a, err := api.New(api.Options{Version: "0"}, http.NewServeMux()) // describing needs no database
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(a.Document())
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Indent(&want, raw, "", " "); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	const path = "../../web/src/gen/openapi.json"
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the routes say (%v): run 'make gen' and commit it", path, err)
	}
}
