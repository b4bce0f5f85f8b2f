package sandbox

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/sandbox/egress"
	"cairn/sandbox/egress/egresstest"
)

// decisions collects what a proxy decided.
type decisions struct {
	mu  sync.Mutex
	all []egress.Decision
}

func (d *decisions) add(b egress.Batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, b.Decisions...)
}

func (d *decisions) find(match func(egress.Decision) bool) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var n int64
	for _, x := range d.all {
		if match(x) {
			n += x.Count
		}
	}
	return n
}

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello from %s\n", r.Host) }

// run gives everything about a command that may fail.
func run(t testing.TB, i *Instance, command string) (code int, out string) {
	t.Helper()
	r, err := i.Exec(context.Background(), ExecRequest{Shell: command, Timeout: 2 * time.Minute})
	must(t, err)
	if r.ExitCode == nil {
		return -r.Signal, r.Stdout.Text() + r.Stderr.Text()
	}
	return *r.ExitCode, r.Stdout.Text() + r.Stderr.Text()
}

// around are ways past a proxy. None may work in any tier, whatever the proxy lets through.
func around(server string) map[string]string {
	return map[string]string{
		"direct address":    "curl -sS -k --noproxy '*' -m 5 https://" + server + "/",
		"NO_PROXY":          "NO_PROXY='*' no_proxy='*' curl -sS -k -m 5 https://" + server + "/",
		"NO_PROXY name":     "NO_PROXY='*' no_proxy='*' curl -sS -k -m 5 https://ok.example.com/",
		"TCP":               "bash -c 'exec 3<>/dev/tcp/" + server + "/443'",
		"UDP":               "bash -c 'echo x > /dev/udp/" + server + "/53'",
		"name server":       "bash -c 'echo x > /dev/udp/93.184.215.2/53'",
		"IPv6":              "curl -sS -g -k --noproxy '*' -m 5 'https://[2a00:1450:4001::2]/'",
		"raw socket":        `perl -MSocket -e 'socket(my $s, PF_INET, SOCK_RAW, 1) or die "refused: $!"'`,
		"packet socket":     `perl -e 'socket(my $s, 17, 3, 768) or die "refused: $!"'`,
		"name resolution":   "getent hosts ok.example.com",
		"worker's loopback": "bash -c 'exec 3<>/dev/tcp/127.0.0.1/9'",
		"metadata":          "curl -sS --noproxy '*' -m 5 http://169.254.169.254/",
	}
}

func TestEgressNone(t *testing.T) {
	w := egresstest.Enter(t)
	if w == nil {
		return
	}
	server := w.Serve("ok.example.com", http.HandlerFunc(hello))
	for name, n := range map[string]*Network{"nothing": nil, "tier none": {Policy: egress.Policy{Tier: egress.None}}} {
		i := prepare(t, func(s *Spec) { s.Network = n })
		if out := shell(t, i, "cat /proc/net/tcp /proc/net/tcp6 | grep -c ' 0A ' || true; env | grep -ci proxy || true"); out != "0\n0\n" {
			t.Errorf("%s: listeners and variables: %q", name, out)
		}
		for way, command := range around(server) {
			if code, out := run(t, i, command); code == 0 {
				t.Errorf("%s, %s: worked: %s", name, way, out)
			}
		}
		if i.Egress() != nil || i.Report().Egress.Tier != egress.None {
			t.Errorf("%s: %+v %+v", name, i.Egress(), i.Report().Egress)
		}
	}
	if w.Asked("example.com") != 0 {
		t.Error("the name server was asked")
	}
}

func TestEgressList(t *testing.T) {
	w := egresstest.Enter(t)
	if w == nil {
		return
	}
	server := w.Serve("ok.example.com", http.HandlerFunc(hello))
	w.Serve("other.example.com", http.HandlerFunc(hello))
	w.Serve("pass.example.com", http.HandlerFunc(hello))
	w.Serve("narrow.example.com", http.HandlerFunc(hello))
	w.Serve("plain.example.com", http.HandlerFunc(hello))
	w.Serve("jump.example.com", http.RedirectHandler("https://other.example.com/secret", http.StatusFound))
	// The name server changes its mind between two connections, mixes, or leads inside at once.
	rebind := w.Serve("rebind.example.com", http.HandlerFunc(hello))
	w.Name("rebind.example.com", func(query int) []string {
		if query > 1 {
			return []string{"10.0.0.1"}
		}
		return []string{rebind}
	})
	w.Name("mixed.example.com", func(int) []string { return []string{server, "127.0.0.1"} })
	w.Name("metadata.example.com", func(int) []string { return []string{"169.254.169.254"} })
	w.Name("mapped.example.com", func(int) []string { return []string{"64:ff9b::a9fe:a9fe"} })
	w.Name("worker.example.com", func(int) []string { return []string{"93.184.215.1"} })
	seen := &decisions{}
	list := egress.Policy{Tier: egress.List, Rules: []egress.Rule{
		{Host: "ok.example.com"},
		{Host: "jump.example.com"},
		{Host: "rebind.example.com"},
		{Host: "mixed.example.com"},
		{Host: "metadata.example.com"},
		{Host: "mapped.example.com"},
		{Host: "worker.example.com"},
		{Host: "pass.example.com", Tunnel: true},
		{Host: "plain.example.com", Plain: true},
		{Host: "narrow.example.com", Methods: []string{"GET"}, Paths: []string{"/v1/*"}},
	}}
	i := prepare(t, func(s *Spec) { s.Network = &Network{Policy: list, OnDecided: seen.add} })

	for command, want := range map[string]string{
		"curl -sS https://ok.example.com/":                                                                "hello from ok.example.com",
		"curl -sS --http2 https://ok.example.com/":                                                        "hello from ok.example.com",
		"curl -sSI https://ok.example.com/":                                                               "200 OK",
		"curl -sS -k https://pass.example.com/":                                                           "hello from pass.example.com",
		"curl -sS http://plain.example.com/x":                                                             "hello from plain.example.com",
		"curl -sS https://narrow.example.com/v1/x?y=/../z":                                                "hello from narrow.example.com",
		"curl -sS -d @/usr/bin/env https://ok.example.com/":                                               "hello from ok.example.com",
		"curl -sSv https://ok.example.com/ 2>&1 | grep issuer":                                            "Cairn egress",
		"wget -qO- https://ok.example.com/ || curl -sS https://ok.example.com/":                           "hello from ok.example.com",
		"curl -sS https://rebind.example.com/a https://rebind.example.com/b https://rebind.example.com/c": "hello from rebind.example.com\nhello from rebind.example.com\nhello from rebind.example.com",
	} {
		if code, out := run(t, i, command); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d %s", command, code, out)
		}
	}
	for way, command := range around(server) {
		if code, out := run(t, i, command); code == 0 {
			t.Errorf("%s: worked: %s", way, out)
		}
	}

	refusals := map[string]struct{ command, reason string }{
		"unlisted host":        {"curl -sS https://other.example.com/", egress.ReasonNoRule},
		"DNS tunnel":           {"curl -sS https://c2VjcmV0LWRhdGE.tunnel.example.com/", egress.ReasonNoRule},
		"address":              {"curl -sS -k https://" + server + "/", egress.ReasonLiteral},
		"IPv6 address":         {"curl -sS -g -k 'https://[2a00:1450:4001::2]/'", egress.ReasonLiteral},
		"mapped address":       {"curl -sS -g -k 'https://[::ffff:" + server + "]/'", egress.ReasonLiteral},
		"number":               {connectTo("2130706433:443", `process.exit(1)`), egress.ReasonInvalidHost},
		"loopback by proxy":    {"NO_PROXY= no_proxy= curl -sS -f http://127.0.0.1:3129/", egress.ReasonLiteral},
		"metadata address":     {"curl -sS -f http://169.254.169.254/latest/meta-data/", egress.ReasonLiteral},
		"metadata name":        {"curl -sS https://metadata.example.com/", egress.ReasonAddress},
		"mixed name":           {"curl -sS https://mixed.example.com/", egress.ReasonAddress},
		"NAT64 name":           {"curl -sS https://mapped.example.com/", egress.ReasonAddress},
		"worker's own address": {"curl -sS https://worker.example.com/", egress.ReasonAddress},
		"rebinding name":       {"curl -sS https://rebind.example.com/", egress.ReasonAddress},
		"other port":           {"curl -sS -k https://ok.example.com:8443/", egress.ReasonNoRule},
		"plain http":           {"curl -sS -f http://ok.example.com/", egress.ReasonPlain},
		"method":               {"curl -sS -f -X DELETE https://narrow.example.com/v1/x", egress.ReasonMethod},
		"path":                 {"curl -sS -f https://narrow.example.com/v2/x", egress.ReasonPath},
		"path with dots":       {"curl -sS -f --path-as-is https://narrow.example.com/v1/../v2", egress.ReasonAmbiguousPath},
		"encoded path":         {"curl -sS -f https://narrow.example.com/v1/%2e%2e/v2", egress.ReasonAmbiguousPath},
		"body where one reads": {"curl -sS -f -X GET -d secret https://narrow.example.com/v1/x", egress.ReasonBody},
		"TRACE":                {"curl -sS -f -X TRACE https://ok.example.com/", egress.ReasonForbiddenMethod},
		"Host":                 {"curl -sS -f -H 'Host: other.example.com' https://ok.example.com/", egress.ReasonHostMismatch},
		"absolute form inside": {"curl -sS -f --request-target https://other.example.com/ https://ok.example.com/", egress.ReasonHostMismatch},
		"upgrade":              {"curl -sS -f -H 'Connection: Upgrade' -H 'Upgrade: websocket' https://ok.example.com/", egress.ReasonUpgrade},
		"SNI":                  {"curl -sS -k --connect-to ok.example.com:443:pass.example.com:443 https://ok.example.com/", egress.ReasonSNIMismatch},
		"SNI of a tunnel":      {"curl -sS -k --connect-to other.example.com:443:pass.example.com:443 https://other.example.com/", egress.ReasonSNIMismatch},
		"redirect":             {"curl -sS -f -L https://jump.example.com/", egress.ReasonNoRule},
		"no SNI":               {connectBy(`tls.connect({socket:s,rejectUnauthorized:false},()=>process.exit(0)).on("error",()=>process.exit(1))`), egress.ReasonSNIMissing},
		"no TLS":               {connectBy(`s.write("SSH-2.0-x\r\n");s.on("data",()=>process.exit(0));s.on("close",()=>process.exit(1))`), egress.ReasonNotTLS},
		"ECH":                  {connectBy(`s.write(Buffer.from("` + echHello(t) + `","hex"));s.on("data",()=>process.exit(0));s.on("close",()=>process.exit(1))`), egress.ReasonECH},
		"malformed hello":      {connectBy(`s.write(Buffer.from("160301000501000001ff","hex"));s.on("data",()=>process.exit(0));s.on("close",()=>process.exit(1))`), egress.ReasonHello},
	}
	for way, c := range refusals {
		before := i.Egress().Refused
		if code, out := run(t, i, c.command); code == 0 {
			t.Errorf("%s: worked: %s", way, out)
		} else if got := i.Egress().Refused - before; got != 1 {
			t.Errorf("%s: %d refusals counted: %s", way, got, out)
		}
	}
	if n := w.Asked("tunnel.example.com") + w.Asked("other.example.com"); n != 0 {
		t.Errorf("a refused name was resolved %d times: names carry data", n)
	}
	total := *i.Egress()
	must(t, i.Close())
	for way, c := range refusals {
		if c.reason != "" && seen.find(func(d egress.Decision) bool { return d.Reason == c.reason && !d.Allowed && d.Rule == "" }) == 0 {
			t.Errorf("%s: no decision with reason %s", way, c.reason)
		}
	}
	if n := seen.find(func(d egress.Decision) bool { return !d.Allowed }); n != total.Refused || int(n) != len(refusals) {
		t.Errorf("recorded %d refusals, counted %d, made %d", n, total.Refused, len(refusals))
	}
	if n := seen.find(func(d egress.Decision) bool { return d.Allowed }); n != total.Allowed {
		t.Errorf("recorded %d, counted %d", n, total.Allowed)
	}
	if seen.find(func(d egress.Decision) bool {
		return d.Allowed && d.Rule == "list/narrow.example.com" && d.Path != nil && *d.Path == "/v1/x" && d.Method == "GET" && *d.Request == "narrow.example.com"
	}) != 1 {
		t.Errorf("%+v", seen.all)
	}
	if seen.find(func(d egress.Decision) bool {
		return d.Allowed && d.Rule == "list/pass.example.com" && d.Path == nil && d.Request == nil && d.Method == "CONNECT"
	}) != 1 {
		t.Error("the tunnel is not recorded as one")
	}
}

// connectBy is a client in Node that asks for ok.example.com and goes on with s, the socket behind the answer.
func connectBy(then string) string { return connectTo("ok.example.com:443", then) }

func connectTo(host, then string) string {
	return `node -e 'const net=require("net"),tls=require("tls");const s=net.connect(3128,"127.0.0.1",()=>s.write("CONNECT ` + host + ` HTTP/1.1\r\nHost: ` + host + `\r\n\r\n"));s.once("data",()=>{` + then + `})'`
}

// echHello is a ClientHello of 45 bytes with the name ok.example.com and an encrypted_client_hello, in hex.
func echHello(testing.TB) string {
	name := "ok.example.com"
	ext := fmt.Sprintf("0000%04x%04x00%04x%x", len(name)+5, len(name)+3, len(name), name) + "fe0d000200ff"
	body := "0303" + strings.Repeat("ab", 32) + "00" + "00021301" + "0100" + fmt.Sprintf("%04x", len(ext)/2) + ext
	return fmt.Sprintf("160301%04x01%06x%s", len(body)/2+4, len(body)/2, body)
}

// TestEgressStreams sends on at once: what a server sends is there at once, through the proxy and into the sandbox.
func TestEgressStreams(t *testing.T) {
	w := egresstest.Enter(t)
	if w == nil {
		return
	}
	sent := make(chan time.Time, 1)
	goOn := make(chan struct{})
	w.Serve("sse.example.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-goOn
		sent <- time.Now()
		_, _ = io.WriteString(w, "data: one\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	secrets := secretMap{"key": "sk-live-0123456789"}
	i := prepare(t, func(s *Spec) {
		s.Network = &Network{Secrets: secrets, Policy: egress.Policy{
			Tier: egress.List, Rules: []egress.Rule{{Host: "sse.example.com"}},
			Injections: []egress.Injection{{Host: "sse.example.com", Header: "Authorization", Prefix: "Bearer ", Secret: "key"}},
		}}
	})
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan time.Time, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = i.Exec(ctx, ExecRequest{Shell: "curl -sSN -D /dev/stderr https://sse.example.com/", OnOutput: func(stream string, p []byte) {
			if stream == "stderr" && strings.Contains(string(p), "text/event-stream") {
				close(goOn)
			}
			if stream == "stdout" {
				got <- time.Now()
			}
		}})
	}()
	at, came := <-sent, <-got
	if d := came.Sub(at); d > 50*time.Millisecond {
		t.Errorf("the first byte took %v", d)
	} else {
		t.Logf("first byte after %v", d)
	}
	cancel()
	<-ended
}

type secretMap map[string]string

func (m secretMap) Secret(_ context.Context, name string) (string, error) {
	if v, ok := m[name]; ok {
		return v, nil
	}
	return "", fmt.Errorf("no secret %q", name)
}
