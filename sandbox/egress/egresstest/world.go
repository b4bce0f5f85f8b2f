// Package egresstest is a small internet for tests: a network namespace with a name server and TLS servers at
// public-looking addresses, and the running test in another one, joined by a cable. Nothing leaves the machine,
// and the code under test needs no seam: it resolves by /etc/resolv.conf and trusts by SSL_CERT_FILE, as ever.
// Only tests import it. It imports the standard library and golang.org/x/sys.
//
//	[ test, worker, proxy: 93.184.215.1 ] --- cable --- [ 93.184.215.2: names; .10 and up: servers ]
package egresstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	inside  = "CAIRN_TEST_WORLD"
	worker  = "93.184.215.1"
	gateway = "93.184.215.2"
)

// init keeps the process's first thread, by which /proc/PID shows its network, for the test's main goroutine.
func init() { runtime.LockOSThread() }

// World is the internet of one test.
type World struct {
	t      testing.TB
	jobs   chan func()
	caKey  *ecdsa.PrivateKey
	caCert *x509.Certificate

	mu      sync.Mutex
	names   map[string]func(query int) []string
	queries map[string]int
	next    int
}

// Enter runs the calling test once more, alone, as a process in a network of its own. It gives the World there;
// in the first process it gives nil when that one has passed.
func Enter(t *testing.T) *World {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("needs root, for network namespaces")
		}
		t.Skip("needs root, for network namespaces")
	}
	if os.Getenv(inside) == t.Name() {
		return newWorld(t)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := exec.Command(self, "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "5m")
	c.Env = append(os.Environ(), inside+"="+t.Name(), "SSL_CERT_FILE="+filepath.Join(dir, "ca.pem"))
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the child ends with this thread
	defer runtime.UnlockOSThread()
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in its own network: %v\n%s", err, out)
	}
	t.Logf("in its own network:\n%s", out)
	return nil
}

func newWorld(t testing.TB) *World {
	w := &World{t: t, jobs: make(chan func()), names: map[string]func(int) []string{}, queries: map[string]int{}, next: 10}
	w.must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	dir := t.TempDir()
	for name, text := range map[string]string{"resolv.conf": "nameserver " + gateway + "\noptions attempts:1 timeout:2\n", "hosts": "127.0.0.1 localhost\n"} {
		file := filepath.Join(dir, name)
		w.must(os.WriteFile(file, []byte(text), 0o644))
		w.must(unix.Mount(file, "/etc/"+name, "", unix.MS_BIND, ""))
	}
	w.authority()
	go func() { // never unlocked: the thread, which is in the other network, ends with it
		runtime.LockOSThread()
		for f := range w.jobs {
			f()
		}
	}()
	w.there(func() {
		w.must(unix.Unshare(unix.CLONE_NEWNET))
		w.ip("link set lo up")
		w.ip(fmt.Sprintf("link add cable type veth peer name cable netns %d", os.Getpid()))
		w.ip("link set cable up")
		w.address(gateway)
	})
	for _, args := range []string{"link set lo up", "addr add " + worker + "/24 dev cable", "addr add 2a00:1450:4001::1/64 dev cable nodad", "link set cable up", "route add default via " + gateway} {
		w.ip(args)
	}
	w.serveNames()
	return w
}

func (w *World) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// there runs f in the network of the servers.
func (w *World) there(f func()) {
	done := make(chan struct{})
	w.jobs <- func() { defer close(done); f() }
	<-done
}

func (w *World) ip(args string) {
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		panic(fmt.Sprintf("ip %s: %v: %s", args, err, out))
	}
}

func (w *World) address(a string) { w.ip("addr add " + a + "/24 dev cable") }

func (w *World) authority() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	w.caKey = key
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test internet"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	w.must(err)
	w.caCert, err = x509.ParseCertificate(der)
	w.must(err)
	w.must(os.WriteFile(os.Getenv("SSL_CERT_FILE"), w.AuthorityPEM(), 0o644))
}

// AuthorityPEM is what everybody out there is signed by; a sandbox does not trust it.
func (w *World) AuthorityPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.caCert.Raw})
}

func (w *World) certificate(name string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, w.caCert, &key.PublicKey, w.caKey)
	w.must(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Serve puts a server for a name on the internet, at ports 443 (TLS) and 80, and gives its address.
func (w *World) Serve(name string, h http.Handler) string {
	w.next++
	ip := fmt.Sprintf("93.184.215.%d", w.next)
	w.Name(name, func(int) []string { return []string{ip} })
	w.ServeAt(ip, name, h)
	return ip
}

// ServeAt does so at an address, and leaves the name to the caller.
func (w *World) ServeAt(ip, name string, h http.Handler) {
	cert := w.certificate(name)
	quiet := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: nil}
	w.there(func() {
		w.address(ip)
		secure, err := tls.Listen("tcp", ip+":443", &tls.Config{Certificates: []tls.Certificate{cert}})
		w.must(err)
		open, err := net.Listen("tcp", ip+":80")
		w.must(err)
		for _, l := range []net.Listener{secure, open} {
			w.t.Cleanup(func() { l.Close() })
			go func() { _ = quiet.Serve(l) }()
		}
	})
}

// Name makes a name lead to what f gives for its query number 1, 2, ... (one for each address family asked).
func (w *World) Name(name string, f func(query int) []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = f
}

// Asked tells how often the name server was asked for a name, or for one below it.
func (w *World) Asked(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for asked, count := range w.queries {
		if asked == name || strings.HasSuffix(asked, "."+name) {
			n += count
		}
	}
	return n
}
