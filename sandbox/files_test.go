package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

func TestFileTools(t *testing.T) {
	i := prepare(t, nil)
	ctx := context.Background()
	created, err := i.Write(ctx, "dir/a.txt", []byte("one two one\n"), 0)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	created, err = i.Write(ctx, "/workspace/run.sh", []byte("#!/bin/sh\necho ran\n"), 0o755)
	if err != nil || !created || shell(t, i, "./run.sh; stat -c %a dir/a.txt run.sh") != "ran\n644\n755\n" {
		t.Fatal(created, err)
	}
	if created, err = i.Write(ctx, "run.sh", []byte("#!/bin/sh\necho again\n"), 0); err != nil || created || shell(t, i, "./run.sh") != "again\n" {
		t.Error("mode is not kept", created, err)
	}
	if n, err := i.Edit(ctx, "dir/a.txt", "two", "2", false); n != 1 || err != nil {
		t.Error(n, err)
	}
	if n, err := i.Edit(ctx, "dir/a.txt", "one", "1", true); n != 2 || err != nil {
		t.Error(n, err)
	}
	r, err := i.Read(ctx, "dir/a.txt", 2, 3)
	if err != nil || string(r.Data) != "2 1" || !r.Truncated || r.Size != 6 {
		t.Errorf("%q %+v %v", r.Data, r, err)
	}
	if r, err = i.Read(ctx, "dir/a.txt", 0, 6); err != nil || r.Truncated || string(r.Data) != "1 2 1\n" {
		t.Errorf("%+v %v", r, err)
	}
	if r, err = i.Read(ctx, "dir/a.txt", 100, 0); err != nil || len(r.Data) != 0 || r.Truncated {
		t.Errorf("beyond the end: %+v %v", r, err)
	}
	if st, err := i.Stat(ctx, "dir"); err != nil || !st.Mode.IsDir() || st.ModTime.IsZero() {
		t.Error(st, err)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	if _, err := i.Write(ctx, "big", big, 0); err != nil {
		t.Fatal(err)
	}
	if r, err = i.Read(ctx, "big", 0, 0); err != nil || !bytes.Equal(r.Data, big) {
		t.Error("big file differs", err)
	}
	if _, err := i.Write(ctx, "empty", nil, 0); err != nil {
		t.Error(err)
	}
}

func TestFileToolsRefuse(t *testing.T) {
	i := prepare(t, nil)
	ctx := context.Background()
	shell(t, i, `mkdir d; mkfifo fifo; echo x > two; echo x >> two; ln -s /proc/self/mem mem; ln -s /proc/self/fd fds; ln -s /etc/passwd link
		ln -s loop loop; echo ro > ro; chmod 444 ro; echo no > no; chmod 0 no`)
	write := func(p string) error { _, err := i.Write(ctx, p, []byte("x"), 0); return err }
	read := func(p string) error { _, err := i.Read(ctx, p, 0, 0); return err }
	edit := func(p, old, new string) error { _, err := i.Edit(ctx, p, old, new, false); return err }
	grep := func(p, e, g string) error { _, _, err := i.Grep(ctx, p, e, g, 0); return err }
	glob := func(d, p string) error { _, _, err := i.Glob(ctx, d, p, 0); return err }
	for _, c := range []struct {
		code string
		err  error
	}{
		{"not_found", read("missing")},
		{"is_directory", read("d")},
		{"not_regular", read("fifo")},
		{"not_regular", read("/dev/zero")},
		{"denied", read("mem")},
		{"denied", read("/proc/self/environ")},
		{"denied", read("/proc/1/mem")},
		{"denied", read("fds/0")},
		{"denied", read("no")},
		{"denied", read("loop")},
		{"bad_argument", read("")},
		{"denied", write("/usr/x")},
		{"denied", write("/etc/passwd")},
		{"denied", write("link")},
		{"is_directory", write("d")},
		{"not_regular", write("fifo")},
		{"denied", write("/proc/self/mem")},
		{"denied", write("mem")},
		{"denied", write("ro")},
		{"not_directory", write("two/x")},
		{"not_found", write("/proc/self/new")},
		{"not_unique", edit("two", "x", "y")},
		{"no_match", edit("two", "zzz", "y")},
		{"bad_argument", edit("two", "", "y")},
		{"bad_argument", edit("two", "x", "x")},
		{"not_found", edit("missing", "x", "y")},
		{"bad_pattern", grep(".", "(", "")},
		{"bad_pattern", grep(".", "x", "[")},
		{"bad_pattern", glob(".", "[")},
		{"not_found", grep("missing", "x", "")},
		{"denied", grep("/proc", "x", "")},
		{"too_large", edit("two", strings.Repeat("x", 2<<20), "y")},
		{"bad_argument", read(strings.Repeat("x", 5000))},
		{"bad_argument", read("a\x00b")},
	} {
		var f *ToolError
		if !errors.As(c.err, &f) || f.Code != c.code {
			t.Errorf("want %s, got %v", c.code, c.err)
		}
	}
	if out := shell(t, i, "cat two ro; ls -A | grep cairn || true"); out != "x\nx\nro\n" {
		t.Errorf("%q", out)
	}
}

func TestSearch(t *testing.T) {
	i := prepare(t, nil)
	ctx := context.Background()
	shell(t, i, `mkdir -p a/b/c .git; echo 'func main() {}' > a/main.go; echo 'func other() {}' > a/b/c/other.go; echo text > a/b/readme.md; echo 'func git' > .git/config
		printf 'func\000' > binary.go; ln -s / root; for n in $(seq 30); do echo "line $n" >> many; done; head -c 300000 /dev/zero | tr '\0' y > long; echo >> long; echo 'func last' >> long; mkfifo pipe.go`)
	for pattern, want := range map[string][]string{
		"**/*.go": {"a/b/c/other.go", "a/main.go", "binary.go", "pipe.go"}, "*": {".git", "a", "binary.go", "long", "many", "pipe.go", "root"},
		"a/*": {"a/b", "a/main.go"}, "a/**/c/**": {"a/b/c", "a/b/c/other.go"}, "**/c/*": {"a/b/c/other.go"}, "nothing*": nil, ".git/*": {".git/config"},
	} {
		got, more, err := i.Glob(ctx, "", pattern, 0)
		if pattern == "*" { // the folder itself is passed over with its content
			want = want[1:]
		}
		if err != nil || more || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q %v %v", pattern, got, more, err)
		}
	}
	if got, more, err := i.Glob(ctx, "a", "**", 2); err != nil || !more || len(got) != 2 {
		t.Error(got, more, err)
	}
	ms, more, err := i.Grep(ctx, "", `func \w+`, "", 0)
	if err != nil || more || fmt.Sprint(ms) != "[{a/b/c/other.go 1 func other() {}} {a/main.go 1 func main() {}} {long 2 func last}]" {
		t.Errorf("%v %v %v", ms, more, err)
	}
	if ms, _, err = i.Grep(ctx, "", "func", "*.go", 0); err != nil || len(ms) != 2 {
		t.Error(ms, err)
	}
	if ms, _, err = i.Grep(ctx, "", "func", "a/*.go", 0); err != nil || len(ms) != 1 {
		t.Error(ms, err)
	}
	if ms, more, err = i.Grep(ctx, "many", "line", "", 10); err != nil || !more || len(ms) != 10 || ms[9].Line != 10 {
		t.Error(ms, more, err)
	}
}

func TestFileMode(t *testing.T) {
	if m := fileMode(0o104755); m != fs.ModeSetuid|0o755 {
		t.Error(m)
	}
	if m := fileMode(0o120777); m != fs.ModeSymlink|0o777 {
		t.Error(m)
	}
}
