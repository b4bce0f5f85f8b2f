package ns

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeEtc makes /etc from nothing: no file of the host's /etc is bound, and
// only public ones are copied (the linker's cache, links to alternatives, the
// certificate authorities).
func writeEtc(p *Plan, stage string) error {
	id := fmt.Sprint(p.Agent)
	files := map[string]string{
		"passwd": "root:x:0:0:root:/:/usr/sbin/nologin\n" +
			"agent:x:" + id + ":" + id + ":agent:" + homeDir + ":/bin/sh\n" +
			"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
		"group":         "root:x:0:\ntty:x:5:\nagent:x:" + id + ":\nnogroup:x:65534:\n",
		"hosts":         "127.0.0.1 localhost " + p.Hostname + "\n::1 localhost\n",
		"hostname":      p.Hostname + "\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\nprotocols: files\n",
		"resolv.conf":   "",
		"shells":        "/bin/sh\n/bin/bash\n",
	}
	for name, text := range files {
		if err := os.WriteFile(stage+"/etc/"+name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	links := map[string]string{"localtime": "/usr/share/zoneinfo/UTC", "os-release": "../usr/lib/os-release", "mtab": "/proc/self/mounts"}
	for name, to := range links {
		if err := os.Symlink(to, stage+"/etc/"+name); err != nil {
			return err
		}
	}
	if err := copyFirst(stage+"/etc/ld.so.cache", "/etc/ld.so.cache"); err != nil {
		return err
	}
	if err := copyFirst(stage+"/etc/ssl/certs/ca-certificates.crt",
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"); err != nil {
		return err
	}
	return copyAlternatives(stage)
}

// copyFirst copies the first source that exists. A host without any has no
// such file, and neither has the sandbox.
func copyFirst(to string, from ...string) error {
	for _, name := range from {
		b, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	}
	return nil
}

// copyAlternatives repeats the links of /etc/alternatives that lead to
// programs and libraries; manual pages are left out, they are the most.
func copyAlternatives(stage string) error {
	const from = "/etc/alternatives"
	names, err := os.ReadDir(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(stage+from, 0o755); err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasSuffix(n.Name(), ".gz") {
			continue
		}
		to, err := os.Readlink(from + "/" + n.Name())
		if err != nil || !strings.HasPrefix(to, "/usr/") {
			continue
		}
		if err := os.Symlink(to, stage+from+"/"+n.Name()); err != nil {
			return err
		}
	}
	return nil
}
