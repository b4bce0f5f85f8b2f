package egress

import "strconv"

// Ports of the listeners inside of a sandbox, on 127.0.0.1.
const (
	Port      = 3128 // the proxy
	ModelPort = 3129 // the model gateway
)

// BundlePath is where a sandbox finds its certificate authorities: the host's, and the proxy's.
const BundlePath = "/etc/ssl/certs/ca-certificates.crt"

// Environment makes the usual programs use the proxy and trust what it shows: curl, git, Node, Python, Go, cargo.
func Environment() map[string]string {
	proxy := "http://127.0.0.1:" + strconv.Itoa(Port)
	env := map[string]string{"NODE_USE_ENV_PROXY": "1", "GIT_SSL_CAINFO": BundlePath}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "CARGO_HTTP_PROXY"} {
		env[name] = proxy
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		env[name] = "localhost,127.0.0.1,::1"
	}
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT"} {
		env[name] = BundlePath
	}
	return env
}
