package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn/db"
	"cairn/domain/run"
)

// module copies the source tree of a published Go module without dependencies out of the module cache.
func module(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/uuid").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "uuid")
	if err := os.CopyFS(dir, os.DirFS(strings.TrimSpace(string(out)))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fingerprint covers names, modes, times and contents of a tree.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %v %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if entry.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum.Write(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func TestRunOnARealModule(t *testing.T) {
	data, dir := installationDir(t), module(t)
	before := fingerprint(t, dir)
	prompt := "$ go vet ./...\n$ go test ./...\nwrite NOTE.md: vet and tests were run\n"
	r := cairn(t, prompt, "run", "--data", data, "--dir", dir, "--output", "jsonl", "--apply", "none", "-").want(t, exitDone)
	if after := fingerprint(t, dir); after != before {
		t.Fatal("the folder was changed")
	}
	events := lines[db.Line](t, r.stdout)
	var kinds []string
	exits := 0
	stamp := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)
	for i, e := range events {
		kinds = append(kinds, e.Kind)
		if e.Position == 0 || e.Version == 0 || e.Schema == 0 || e.Actor == "" || !stamp.MatchString(e.At) || !strings.Contains(e.Stream, "/") {
			t.Fatalf("event %d is not as the contract says: %+v", i, e)
		}
		if i > 0 && e.Position <= events[i-1].Position {
			t.Fatalf("position %d after %d", e.Position, events[i-1].Position)
		}
		if e.Kind == "run.tool_returned" {
			var returned struct {
				Outcome  string `json:"outcome"`
				ExitCode *int   `json:"exit_code"`
				Output   string `json:"output"`
			}
			if err := json.Unmarshal(e.Data, &returned); err != nil {
				t.Fatal(err)
			}
			if returned.Outcome != "ok" || returned.ExitCode != nil && *returned.ExitCode != 0 {
				t.Fatalf("a tool did not succeed: %s", e.Data)
			}
			if returned.ExitCode != nil {
				exits++
			}
		}
	}
	for _, want := range []string{"conversation.opened", "run.queued", "run.started", "run.sandbox_prepared", "run.model_answered", "run.tool_called", "run.succeeded", "conversation.turn_ended"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no %s among %v", want, kinds)
		}
	}
	if exits != 2 {
		t.Errorf("%d shell commands ended with exit code 0, want 2", exits)
	}
	checkReport(t, events)
	cairn(t, "", "log", "verify", "--data", data).want(t, exitDone)
	cairn(t, "", "replay", "verify", "--data", data).want(t, exitDone)
}

// checkReport wants every control installed and observed, also those that grade C- does not ask for, and grade C.
func checkReport(t *testing.T, events []db.Line) {
	t.Helper()
	for _, e := range events {
		if e.Kind != "run.sandbox_prepared" {
			continue
		}
		var prepared struct {
			Grade  *string `json:"grade"`
			Report struct {
				Controls []struct {
					Name                string
					Requested           bool
					Installed, Observed *bool
				}
			}
		}
		if err := json.Unmarshal(e.Data, &prepared); err != nil {
			t.Fatal(err)
		}
		if prepared.Grade == nil || *prepared.Grade != "C" {
			t.Errorf("grade %v, want C", prepared.Grade)
		}
		if len(prepared.Report.Controls) < 10 {
			t.Errorf("the report has %d controls", len(prepared.Report.Controls))
		}
		for _, c := range prepared.Report.Controls {
			if c.Installed == nil || !*c.Installed || c.Observed == nil || !*c.Observed {
				t.Errorf("control %s: %+v", c.Name, c)
			}
		}
	}
}

func TestErasedLocal(t *testing.T) {
	data := installationDir(t)
	cairn(t, "", "run", "--data", data, "$ true").want(t, exitDone)
	afterErasure(t, data)
}

func TestRunAnswersAndExitCodes(t *testing.T) {
	data := installationDir(t)
	plain := cairn(t, "", "run", "--data", data, "--output", "text", "$ echo hello from the sandbox").want(t, exitDone)
	if !strings.Contains(plain.stdout, "hello from the sandbox") {
		t.Errorf("the answer does not tell what the tool printed: %q", plain.stdout)
	}
	one := cairn(t, "", "run", "--data", data, "--output", "json", "$ exit 3").want(t, exitDone)
	var o struct {
		Outcome string  `json:"outcome"`
		Answer  *string `json:"answer"`
	}
	if err := json.Unmarshal([]byte(one.stdout), &o); err != nil || o.Outcome != "succeeded" || !strings.Contains(*o.Answer, "3") {
		t.Errorf("%v: %s", err, one.stdout)
	}
	for _, bad := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", "--apply", "all", "x"}, exitUsage, "--apply"},
		{[]string{"run", "--dir", "/does/not/exist", "x"}, exitUsage, "--dir"},
		{[]string{"run", "--tool", "/does/not/exist", "x"}, exitUsage, "--tool"},
		{[]string{"run", "--output", "xml", "x"}, exitUsage, "xml"},
		{[]string{"run", "--model", "no-such-model", "x"}, exitRunFailed, "no-such-model"},
		{[]string{"run", ""}, exitUsage, "empty"},
		{[]string{"run", "nul \x01 is fine", "two"}, exitUsage, "accepts 1 arg"},
		{[]string{"log", "show", "run/nonsense"}, exitUsage, "nonsense"},
		{[]string{"log", "show", "run/00000000-0000-7000-8000-000000000000"}, exitFailure, "no stream"},
		{[]string{"log", "tail", "--after", "999999"}, exitConflict, "start over"},
		{[]string{"log", "tail", "--after", "-1"}, exitUsage, "-1"},
		{[]string{"run", "--dir", "", "x"}, exitUsage, "--dir"},
		{[]string{"run", "--dir", filepath.Dir(data), "x"}, exitUsage, "--data"},
		{[]string{"log", "tail", "--kinds", "run.nonsense"}, exitUsage, "run.nonsense"},
		{[]string{"log", "verify", "--output", "jsonl"}, exitUsage, "jsonl"},
		{[]string{"log", "checkpoint", "--output", "json"}, exitUsage, "json"},
		{[]string{"admin", "restored", "--output", "json"}, exitUsage, "json"},
		{[]string{"completion", "nonsense"}, exitUsage, "nonsense"},
		{[]string{"help", "nonsense"}, exitUsage, "nonsense"},
		{[]string{"nonsense"}, exitUsage, "nonsense"},
		{[]string{"log", "nonsense"}, exitUsage, "nonsense"},
		{[]string{"run", "--nonsense"}, exitUsage, "nonsense"},
	} {
		r := cairn(t, "", append([]string{"--data", data}, bad.args...)...)
		if r.code != bad.code || !strings.Contains(r.stderr, bad.says) {
			t.Errorf("cairn %q: exit code %d (want %d), says %q (want %q in it)", bad.args, r.code, bad.code, r.stderr, bad.says)
		}
	}
	cairn(t, strings.Repeat("x", 1<<20+1), "run", "--data", data, "-").want(t, exitUsage)
	cairn(t, "lone \xed\xa0\x80 surrogate", "run", "--data", data, "-").want(t, exitUsage)
	cairn(t, "a NUL \x00 in it", "run", "--data", data, "-").want(t, exitUsage)
	cairn(t, "$ echo "+strings.Repeat("y", 1<<20-7), "run", "--data", data, "-")
	odd := cairn(t, "$ printf '%s\\n' 'a\tb\x1b' | cat -A\r\nmore\r\n", "run", "--data", data, "-").want(t, exitDone)
	if !strings.Contains(odd.stdout, "a^Ib^[") {
		t.Errorf("a prompt with a tab, an escape and line ends of Windows: %q", odd.stdout)
	}
	refused := cairn(t, "", "log", "tail", "--data", data, "--json", "--kinds", "conversation.opened").stdout
	posted := cairn(t, "", "log", "tail", "--data", data, "--json", "--kinds", "run.queued").stdout
	if opened, queued := strings.Count(refused, "\n"), strings.Count(posted, "\n"); opened != queued {
		t.Errorf("%d conversations for %d runs: a refused prompt left one behind", opened, queued)
	}
	cairn(t, "", "log", "verify", "--data", data).want(t, exitDone)
	cairn(t, "", "replay", "verify", "--data", data).want(t, exitDone)
	readNothing(t, "log", "tail", "--data", data)
	lostLogKey(t, data)
}

// afterErasure: whoever erased the space or the account that runs had so far goes on with a new one.
func afterErasure(t *testing.T, data string) {
	t.Helper()
	for _, kind := range []string{"space", "account", "space"} {
		created := map[string]string{"space": "space.created", "account": "account.opened"}[kind]
		all := lines[struct{ Stream string }](t, cairn(t, "", "log", "tail", "--data", data, "--json", "--kinds", created).want(t, exitDone).stdout)
		_, id, _ := strings.Cut(all[len(all)-1].Stream, "/")
		cairn(t, "", "admin", "erase", kind, id, "--yes", "--data", data).want(t, exitDone)
		cairn(t, "", "run", "--data", data, "$ true").want(t, exitDone)
	}
	cairn(t, "", "log", "verify", "--data", data).want(t, exitDone)
	cairn(t, "", "replay", "verify", "--data", data).want(t, exitDone)
}

// lostLogKey: a log that is signed is never signed with a new key in silence.
func lostLogKey(t *testing.T, data string) {
	t.Helper()
	key, public := filepath.Join(data, "keys", "log.key"), filepath.Join(data, "keys", "log.pub")
	before, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	r := cairn(t, "", "run", "--data", data, "$ true").want(t, exitUsage)
	if after, _ := os.ReadFile(public); !strings.Contains(r.stderr, key) || !bytes.Equal(before, after) {
		t.Errorf("without log.key: %s\nlog.pub was %s, is %s", r.stderr, before, after)
	}
}

// TestInterruptedStart: Ctrl-C is cancellation also while the cluster is still being made or started, and leaves
// no PostgreSQL behind (the folder's cleanup looks).
func TestInterruptedStart(t *testing.T) {
	data := installationDir(t)
	interruptStart(t, "run", "--data", data, "$ echo x")
	cairn(t, "", "migrate", "up", "--data", data).want(t, exitDone)
	interruptStart(t, "log", "verify", "--data", data)
}

// interruptStart sends Ctrl-C at the first line of status, which tells that the cluster is being made or started.
func interruptStart(t *testing.T, args ...string) {
	t.Helper()
	c := command(t.Context(), args...)
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(stderr)
	said.Scan()
	c.Process.Signal(os.Interrupt)
	rest := said.Text()
	for said.Scan() {
		rest += "\n" + said.Text()
	}
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != exitCancelled {
		t.Errorf("exit code %d, want %d\n%s", code, exitCancelled, rest)
	}
}

// readNothing runs a command line whose standard output nobody reads, as before 'head': it must take down what
// it started.
func readNothing(t *testing.T, args ...string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	defer write.Close()
	c := command(t.Context(), args...)
	c.Stdout = write
	if err := c.Run(); err == nil || c.ProcessState.ExitCode() != exitFailure {
		t.Errorf("cairn %v into a closed pipe: %v, want exit code %d", args, err, exitFailure)
	}
}

func TestRunThatLostItsProcessSaysWhy(t *testing.T) {
	code, message := run.CodeWorkerLost, ""
	err := (&localRun{globals: &globals{output: "text"}}).answer(&outcome{Outcome: string(run.StatusFailed), Code: &code, Message: &message})
	if exitCode(err) != exitRunFailed || !strings.Contains(err.Error(), "its process was killed") {
		t.Errorf("%d %v", exitCode(err), err)
	}
}
