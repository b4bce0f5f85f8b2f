package sandbox

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cairn/sandbox/egress"
	"cairn/sandbox/egress/egresstest"
)

// pages is a static site: path to content.
type pages map[string][]byte

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, ok := p[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(b)
}

func tarball(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		must(t, err)
	}
	must(t, w.Close())
	must(t, z.Close())
	return b.Bytes()
}

func zipped(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		f, err := w.Create(name)
		must(t, err)
		_, err = f.Write([]byte(text))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// toolchain gives the first folder that exists, or skips what needs it.
func toolchain(t testing.TB, patterns ...string) string {
	t.Helper()
	for _, p := range patterns {
		if found, _ := filepath.Glob(p); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return ""
}

// TestEgressClients: tools that download work through the proxy as they are, by the variables and the bundle of
// the sandbox alone. The servers out there are signed by an authority that the sandbox does not know.
func TestEgressClients(t *testing.T) {
	w := egresstest.Enter(t)
	if w == nil {
		return
	}
	repo := t.TempDir()
	out, err := exec.Command("sh", "-c", `cd "$1" && git init -q demo && cd demo && echo cloned > file && git add . && git -c user.name=a -c user.email=a@example.org commit -qm one && mv .git ../demo.git`, "sh", repo).CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	w.Serve("git.example.com", &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + repo, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}})
	w.Serve("npm.example.com", pages{
		"/demo":     []byte(`{"name":"demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"demo","version":"1.0.0","dist":{"tarball":"https://npm.example.com/demo.tgz"}}}}`),
		"/demo.tgz": tarball(t, map[string]string{"package/package.json": `{"name":"demo","version":"1.0.0","main":"index.js"}`, "package/index.js": `console.log("from npm")`}),
	})
	w.Serve("pypi.example.com", pages{
		"/simple/demo/": []byte(`<a href="/demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>`),
		"/demo-1.0-py3-none-any.whl": zipped(t, map[string]string{
			"demo.py": `print("from pip")`, "demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
			"demo-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "demo-1.0.dist-info/RECORD": "demo.py,,\n",
		}),
	})
	w.Serve("goproxy.example.com", pages{
		"/example.org/dep/@v/v1.0.0.info": []byte(`{"Version":"v1.0.0"}`), "/example.org/dep/@v/v1.0.0.mod": []byte("module example.org/dep\n"),
		"/example.org/dep/@v/v1.0.0.zip": zipped(t, map[string]string{"example.org/dep@v1.0.0/go.mod": "module example.org/dep\n", "example.org/dep@v1.0.0/dep.go": "package dep\n"}),
	})
	crate := tarball(t, map[string]string{"demo-1.0.0/Cargo.toml": "[package]\nname = \"demo\"\nversion = \"1.0.0\"\n", "demo-1.0.0/src/lib.rs": ""})
	w.Serve("crates.example.com", pages{
		"/index/config.json": []byte(`{"dl":"https://crates.example.com/dl"}`), "/dl/demo/1.0.0/download": crate,
		"/index/de/mo/demo": fmt.Appendf(nil, `{"name":"demo","vers":"1.0.0","deps":[],"cksum":"%x","features":{},"yanked":false}`+"\n", sha256.Sum256(crate)),
	})
	policy := egress.Policy{Tier: egress.List, Rules: []egress.Rule{{Host: "git.example.com", Methods: []string{"GET", "POST"}}}}
	for _, host := range []string{"npm", "pypi", "goproxy", "crates"} {
		policy.Rules = append(policy.Rules, egress.Rule{Host: host + ".example.com", Methods: []string{"GET", "HEAD"}})
	}
	home, _ := os.UserHomeDir()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	python := toolchain(t, home+"/.pyenv/versions/3.11.*")
	rust := toolchain(t, home+"/.rustup/toolchains/stable-*")
	i := prepare(t, func(s *Spec) {
		s.Network = &Network{Policy: policy}
		s.Env = map[string]string{"GOPROXY": "https://goproxy.example.com", "GONOSUMDB": "*", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "npm_config_registry": "https://npm.example.com/", "PIP_INDEX_URL": "https://pypi.example.com/simple/"}
		s.Mounts = append(s.Mounts, Mount{strings.TrimSpace(string(goroot)), "/opt/go"})
		if python != "" {
			s.Mounts = append(s.Mounts, Mount{python, python})
		}
		if rust != "" {
			s.Mounts = append(s.Mounts, Mount{rust, "/opt/rust"})
		}
	})
	for name, c := range map[string]struct{ needs, command, want string }{
		"curl":  {"/usr/bin/curl", "curl -sS https://npm.example.com/demo | head -c 14", `{"name":"demo"`},
		"git":   {"/usr/bin/git", "git clone -q https://git.example.com/demo.git /tmp/demo && cat /tmp/demo/file", "cloned"},
		"npm":   {"/usr/bin/npm", "mkdir -p /tmp/n && cd /tmp/n && npm install --no-audit --no-fund demo >/tmp/npm.log 2>&1 && node -e 'require(\"demo\")'; tail -5 /tmp/npm.log", "from npm"},
		"pip":   {python, python + "/bin/python3 -m pip install -q --disable-pip-version-check --target /tmp/py demo && PYTHONPATH=/tmp/py " + python + "/bin/python3 -c 'import demo' || ls -la " + python + "/lib/python3.11/site-packages/pip " + python, "from pip"},
		"go":    {"/usr", "mkdir -p /tmp/g && cd /tmp/g && printf 'module x\\n\\nrequire example.org/dep v1.0.0\\n' > go.mod && /opt/go/bin/go mod download -x 2>/tmp/go.log; cat /tmp/go.log; ls ~/go/pkg/mod/example.org/", "dep@v1.0.0"},
		"cargo": {rust, "mkdir -p /tmp/c/src /tmp/c/.cargo && cd /tmp/c && printf '[registries.demo]\\nindex = \"sparse+https://crates.example.com/index/\"\\n' > .cargo/config.toml && printf '[package]\\nname = \"x\"\\nversion = \"0.1.0\"\\n\\n[dependencies]\\ndemo = { version = \"1\", registry = \"demo\" }\\n' > Cargo.toml && touch src/lib.rs && PATH=/opt/rust/bin:$PATH CARGO_HOME=/tmp/cargo cargo fetch && find /tmp/cargo -name 'demo-1.0.0.crate'", "demo-1.0.0.crate"},
		"node":  {"/usr/bin/node", `node -e 'const h=require("http"),t=require("tls");h.request({port:3128,host:"127.0.0.1",method:"CONNECT",path:"npm.example.com:443"}).on("connect",(r,s)=>t.connect({socket:s,servername:"npm.example.com"},function(){console.log(this.authorized);process.exit()})).end()'`, "true"},
	} {
		if c.needs == "" {
			t.Logf("%s: not installed, not tried", name)
			continue
		}
		if _, err := os.Stat(c.needs); err != nil {
			t.Logf("%s: %v, not tried", name, err)
			continue
		}
		if code, out := run(t, i, c.command); code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit %d %s", name, code, out)
		} else {
			t.Logf("%s works", name)
		}
	}
	if n := i.Egress().Refused; n != 0 {
		t.Errorf("%d requests were refused", n)
	}
}
