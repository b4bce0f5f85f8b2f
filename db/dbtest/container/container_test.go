package container

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnswersProbesTheSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "docker.sock")
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	if err := Answers(t.Context()); err == nil || !strings.Contains(err.Error(), socket) {
		t.Errorf("nothing listens: %v", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	engine := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_ping" {
			w.WriteHeader(http.StatusNotFound)
		}
	})}
	go func() { _ = engine.Serve(l) }() // ends with Close
	defer engine.Close()
	if err := Answers(t.Context()); err != nil {
		t.Error(err)
	}
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
	if err := Answers(t.Context()); err == nil || !strings.Contains(err.Error(), "tcp://") {
		t.Errorf("a TCP engine: %v", err)
	}
}
