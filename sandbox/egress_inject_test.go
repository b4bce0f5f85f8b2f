package sandbox

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/sandbox/egress"
	"cairn/sandbox/egress/egresstest"
)

// TestEgressInjects: a call with an injected key succeeds, and whatever the server gives back of it, the sandbox
// never has it: not in what it reads, not in its files, environment or memory.
func TestEgressInjects(t *testing.T) {
	w := egresstest.Enter(t)
	if w == nil {
		return
	}
	const key = "sk-live-7Qz/4+9fKd2mVx"
	b64 := base64.StdEncoding.EncodeToString([]byte("bot:" + key))
	got := make(chan http.Header, 64)
	echo := func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Clone()
		all, _ := json.Marshal(r.Header)
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Set-Cookie", "session=owner")
		flush := http.NewResponseController(w)
		for _, part := range []string{string(all), r.Header.Get("Authorization"), "<" + key + ">"} {
			for i := range part { // a byte at a time, each a chunk of its own
				_, _ = io.WriteString(w, part[i:i+1])
				_ = flush.Flush()
			}
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", echo)
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://other.example.com/?k="+key, http.StatusFound)
	})
	mux.HandleFunc("/packed", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, key)
	})
	w.Serve("api.example.com", mux)
	w.Serve("git.example.com", http.HandlerFunc(echo))
	w.Serve("other.example.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Clone()
		fmt.Fprintln(w, "other", r.Header.Get("Authorization"), r.URL.RawQuery)
	}))
	policy := egress.Policy{Tier: egress.List, Rules: []egress.Rule{{Host: "api.example.com"}, {Host: "git.example.com"}, {Host: "other.example.com"}}, Injections: []egress.Injection{
		{Host: "api.example.com", Path: "/v1/*", Header: "Authorization", Prefix: "Bearer ", Secret: "key"},
		{Host: "api.example.com", Path: "/away", Header: "Authorization", Prefix: "Bearer ", Secret: "key"},
		{Host: "git.example.com", Header: "Authorization", Basic: "bot", Secret: "key"},
	}}
	if _, err := newNative(t).Prepare(context.Background(), func() Spec {
		s := testSpec(t)
		s.Network = &Network{Policy: policy, Secrets: secretMap{}}
		return s
	}()); err == nil || !strings.Contains(err.Error(), `no secret "key"`) {
		t.Fatalf("without its secret: %v", err)
	}
	seen := &decisions{}
	i := prepare(t, func(s *Spec) {
		s.Network = &Network{Policy: policy, Secrets: secretMap{"key": key}, OnDecided: seen.add}
	})
	mine := " -H 'Authorization: Bearer mine' -H 'Cookie: a=b' -H 'X-Api-Key: mine' -H 'Range: bytes=0-3'"
	for name, c := range map[string]struct{ command, auth string }{
		"bearer":            {"curl -sSi" + mine + " https://api.example.com/v1/x", "Bearer " + key},
		"basic":             {"curl -sSi -u me:mine" + mine + " https://git.example.com/x", "Basic " + b64},
		"no rule for it":    {"curl -sSi" + mine + " https://api.example.com/v2/x", ""},
		"ambiguous path":    {"curl -sSi " + mine + " 'https://api.example.com/v1/x;y'", ""},
		"another host":      {"curl -sSi -H 'Authorization: Bearer mine' https://other.example.com/", "Bearer mine"},
		"redirect away":     {"curl -sSiL" + mine + " https://api.example.com/away", ""},
		"client's encoding": {"curl -sSi --compressed" + mine + " https://api.example.com/v1/z", "Bearer " + key},
	} {
		code, out := run(t, i, c.command+" | tee -a /tmp/answers")
		if code != 0 {
			t.Errorf("%s: exit %d %s", name, code, out)
			continue
		}
		for _, leak := range []string{key, b64, "owner"} {
			if strings.Contains(out, leak) {
				t.Errorf("%s: %q came back: %s", name, leak, out)
			}
		}
		select {
		case h := <-got:
			if h.Get("Authorization") != c.auth && name != "redirect away" || name == "redirect away" && strings.Contains(h.Get("Authorization"), key) {
				t.Errorf("%s: the server got %q, want %q", name, h.Get("Authorization"), c.auth)
			}
			if (h.Get("Cookie")+h.Get("X-Api-Key")+h.Get("Range") != "" || h.Get("Accept-Encoding") != "identity") && name != "another host" && name != "redirect away" {
				t.Errorf("%s: the server got %v", name, h)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the server was not asked: %s", name, out)
		}
	}
	if code, out := run(t, i, "curl -sS -f https://api.example.com/packed"); code == 0 || strings.Contains(out, key) {
		t.Errorf("a packed answer came through: %s", out)
	}
	if out := shell(t, i, "grep -c '[*][*][*][*][*]' /tmp/answers"); strings.TrimSpace(out) == "0" {
		t.Error("nothing was masked: the search below would prove nothing")
	}

	// A process that holds what it was given, while all of the sandbox is searched from outside.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	holding := make(chan struct{})
	go func() {
		_, _ = i.Exec(ctx, ExecRequest{Shell: `A="$(curl -sSi https://api.example.com/v1/x)"; export A; echo; sleep 600`, OnOutput: func(string, []byte) {
			select {
			case <-holding:
			default:
				close(holding)
			}
		}})
	}()
	<-holding
	found := 0
	for _, pid := range append(groupProcesses(t, i), i.prep.hand.os.Pid) {
		n, at := searchProcess(t, pid, key, b64)
		found += n
		if at != "" {
			t.Errorf("process %d holds the key in its %s", pid, at)
		}
	}
	if found == 0 {
		t.Error("no process could be searched")
	}
	if out := shell(t, i, "grep -rl 'sk-live' /tmp /home /workspace /etc /dev/shm 2>/dev/null || true"); out != "" {
		t.Errorf("files with the key: %s", out)
	}
	if b, _ := json.Marshal(seen.all); strings.Contains(string(b), "sk-live") {
		t.Error("a decision holds the key")
	}
	if r, _ := json.Marshal(i.Report()); strings.Contains(string(r), "sk-live") {
		t.Error("the report holds the key")
	}
}

// groupProcesses are all processes of the sandbox.
func groupProcesses(t testing.TB, i *Instance) []int {
	t.Helper()
	pids, err := i.prep.group.Payload()
	must(t, err)
	return pids
}

// searchProcess reads environment and all memory of a process that can be read, and says where a needle is.
func searchProcess(t testing.TB, pid int, needles ...string) (bytes int, where string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d", pid)
	env, _ := os.ReadFile(filepath.Join(dir, "environ"))
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	must(t, err)
	mem, err := os.Open(filepath.Join(dir, "mem"))
	must(t, err)
	defer mem.Close()
	areas := map[string][]byte{"environment": env}
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || mode[0] != 'r' || mode[1] != 'w' || to-from > 256<<20 {
			continue
		}
		b := make([]byte, to-from)
		n, _ := mem.ReadAt(b, from)
		areas[strings.TrimSpace(line)] = b[:n]
	}
	for name, b := range areas {
		bytes += len(b)
		for _, needle := range needles {
			if strings.Contains(string(b), needle) {
				return bytes, name
			}
		}
	}
	return bytes, ""
}
