package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstLogin signs in with what 'cairn up' prints on its first start, and with what an operator prints.
func TestFirstLogin(t *testing.T) {
	data := installationDir(t)
	first := up(t, data)
	path := filepath.Join(data, "first-login.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var way login
	if err := json.Unmarshal(raw, &way); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %v (%v)", path, info.Mode(), err)
	}
	if line := "\nLogin: " + way.Email + " " + way.Code + "\n"; !strings.Contains(first.said.String(), line) {
		t.Errorf("up did not say %q:\n%s", line, first.said)
	}
	signIn(t, first.url, way, http.StatusOK)
	signIn(t, first.url, way, http.StatusUnauthorized)
	cairn(t, "", "admin", "login", "ann@example.test", "--data", data).want(t, exitUsage)
	made := cairn(t, "", "admin", "login", "Ann@example.test", "--name", "Ann", "--data", data, "--output", "json").want(t, exitDone)
	if err := json.Unmarshal([]byte(made.stdout), &way); err != nil || way.Email != "ann@example.test" {
		t.Fatalf("%v: %s", err, made.stdout)
	}
	signIn(t, first.url, way, http.StatusOK)
	again := cairn(t, "", "admin", "login", "ann@example.test", "--data", data).want(t, exitDone)
	if fields := strings.Fields(again.stdout); len(fields) != 3 || fields[0] != "Login:" || fields[1] != "ann@example.test" {
		t.Errorf("admin login printed %q", again.stdout)
	}
	first.interrupt(t)
	second := up(t, data)
	if strings.Contains(second.said.String(), "Login:") {
		t.Errorf("a second start offers a login although there is one:\n%s", second.said)
	}
	second.interrupt(t)
}

func signIn(t *testing.T, url string, way login, want int) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"email": way.Email, "code": way.Code})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(url+"/api/v1/login", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != want {
		t.Errorf("login as %s answered %d, want %d", way.Email, response.StatusCode, want)
	}
}

// TestDisable ends the sessions of an account and its way in, and gives it back.
func TestDisable(t *testing.T) {
	data := installationDir(t)
	first := up(t, data)
	made := cairn(t, "", "admin", "login", "ann@example.test", "--name", "Ann", "--data", data, "--output", "json").want(t, exitDone)
	var way login
	if err := json.Unmarshal([]byte(made.stdout), &way); err != nil {
		t.Fatal(err)
	}
	cairn(t, "", "admin", "disable", "nobody@example.test", "--data", data).want(t, exitUsage)
	disabled := cairn(t, "", "admin", "disable", "Ann@example.test", "--data", data, "--output", "json").want(t, exitDone)
	if !strings.Contains(disabled.stdout, `"disabled":true`) || !strings.Contains(disabled.stdout, `"email":"ann@example.test"`) {
		t.Errorf("admin disable printed %q", disabled.stdout)
	}
	signIn(t, first.url, way, http.StatusUnauthorized)
	cairn(t, "", "admin", "login", "ann@example.test", "--data", data).want(t, exitConflict)
	enabled := cairn(t, "", "admin", "enable", "ann@example.test", "--data", data).want(t, exitDone)
	if enabled.stdout != "ann@example.test is enabled\n" {
		t.Errorf("admin enable printed %q", enabled.stdout)
	}
	signIn(t, first.url, way, http.StatusUnauthorized) // its codes have ended too
	made = cairn(t, "", "admin", "login", "ann@example.test", "--data", data, "--output", "json").want(t, exitDone)
	if err := json.Unmarshal([]byte(made.stdout), &way); err != nil {
		t.Fatal(err)
	}
	signIn(t, first.url, way, http.StatusOK)
	first.interrupt(t)
}
