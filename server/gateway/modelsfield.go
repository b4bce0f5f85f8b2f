package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// fields is one object of the models file. encoding/json would take a field in
// any case and the last of two; here each is refused, by its place and name.
type fields struct {
	place  string
	values map[string]json.RawMessage
}

func openFields(place string, raw json.RawMessage, known ...string) (fields, error) {
	f := fields{place: place, values: map[string]json.RawMessage{}}
	d := json.NewDecoder(bytes.NewReader(raw))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return f, f.whole("must be a JSON object", err)
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return f, f.whole("is not JSON", err)
		}
		name := token.(string) // the decoder allows nothing else here
		if !slices.Contains(known, name) {
			return f, f.errorf(name, "unknown field; there are %s", strings.Join(known, ", "))
		}
		if _, twice := f.values[name]; twice {
			return f, f.errorf(name, "given twice")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return f, f.errorf(name, "is not JSON: %v", err)
		}
		f.values[name] = value
	}
	if _, err := d.Token(); err != nil {
		return f, f.whole("is not JSON", err)
	}
	if d.More() {
		return f, f.whole("has more text after its end", nil)
	}
	return f, nil
}

func (f fields) errorf(name, format string, args ...any) error {
	if f.place != "" {
		name = f.place + "." + name
	}
	return fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
}

func (f fields) whole(what string, cause error) error {
	place := f.place
	if place == "" {
		place = "the file"
	}
	if cause != nil {
		return fmt.Errorf("%s %s: %w", place, what, cause)
	}
	return fmt.Errorf("%s %s", place, what)
}

func (f fields) need(name string, target any, shape string) error {
	if f.values[name] == nil {
		return f.errorf(name, "missing; must be %s", shape)
	}
	_, err := f.take(name, target, shape)
	return err
}

// take answers whether the field is there. null is a value, and no field takes it.
func (f fields) take(name string, target any, shape string) (bool, error) {
	raw, ok := f.values[name]
	if !ok {
		return false, nil
	}
	if string(raw) == "null" || json.Unmarshal(raw, target) != nil {
		return true, f.errorf(name, "must be %s", shape)
	}
	return true, nil
}

func (f fields) seconds(name string, standard, most time.Duration) (time.Duration, error) {
	var n int64
	shape := fmt.Sprintf("a whole number of seconds from 1 to %d", int64(most.Seconds()))
	if ok, err := f.take(name, &n, shape); err != nil || !ok {
		return standard, err
	}
	if n < 1 || n > int64(most.Seconds()) {
		return 0, f.errorf(name, "%d must be %s", n, shape)
	}
	return time.Duration(n) * time.Second, nil
}

// baseURL does not repeat the address where it may hold a password.
func (f fields) baseURL(text string) (string, error) {
	var allowHTTP bool
	if _, err := f.take("allow_http", &allowHTTP, "true or false"); err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		return "", f.errorf("base_url", "must be an address such as https://api.example.com/v1")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return "", f.errorf("base_url", "must hold no user, password, query or fragment; keys belong in api_key_env or api_key_file")
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && (allowHTTP || isLoopback(u.Hostname())):
	case u.Scheme == "http":
		return "", f.errorf("base_url", "http to %s would send key and prompts readable over the network; use https, or set allow_http to true", u.Host)
	default:
		return "", f.errorf("base_url", "scheme %q must be https, or http", u.Scheme)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

const (
	minKey  = 8       // bytes; a shorter one could not be told from ordinary text
	maxKey  = 4 << 10 // bytes
	keyRule = "must be 8 to 4096 visible ASCII characters without quotes and backslashes; leave the field out if the server needs no key"
)

func (f fields) key(folder string, env Environment) (Secret, error) {
	var variable, file string
	byEnv, err := f.take("api_key_env", &variable, "the name of an environment variable")
	if err != nil {
		return Secret{}, err
	}
	byFile, err := f.take("api_key_file", &file, "the path of a file")
	if err != nil {
		return Secret{}, err
	}
	switch {
	case byEnv && byFile:
		return Secret{}, f.errorf("api_key_file", "give either api_key_env or api_key_file")
	case byEnv:
		value, ok := env(variable)
		if !ok {
			return Secret{}, f.errorf("api_key_env", "the environment variable %q is not set", variable)
		}
		return f.checkKey("api_key_env", value)
	case byFile:
		if !filepath.IsAbs(file) {
			file = filepath.Join(folder, file)
		}
		raw, err := readBounded(file, maxKey)
		if err != nil {
			return Secret{}, f.errorf("api_key_file", "%v", err)
		}
		return f.checkKey("api_key_file", strings.TrimRight(string(raw), "\r\n"))
	}
	return Secret{}, nil
}

func (f fields) checkKey(name, value string) (Secret, error) {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' || r == '\\' }
	if len(value) < minKey || len(value) > maxKey || strings.ContainsFunc(value, odd) {
		return Secret{}, f.errorf(name, "the key it names "+keyRule)
	}
	return Secret{value: value}, nil
}

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	// Set by the gateway, or made for credentials, which it would not redact.
	ownHeaders = []string{
		"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization", "Host", "Content-Type",
		"Content-Length", "Content-Encoding", "Accept", "Accept-Encoding", "Connection", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Expect", "Keep-Alive",
	}
)

func (f fields) headers() (map[string]string, error) {
	var given map[string]*string
	if _, err := f.take("headers", &given, "an object of texts"); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(given))
	for name, value := range given {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if !headerName.MatchString(name) || slices.Contains(ownHeaders, canonical) {
			return nil, f.errorf("headers", "%q may not be set here; a key belongs in api_key_env or api_key_file", name)
		}
		if _, twice := out[canonical]; twice {
			return nil, f.errorf("headers", "%q is given twice", canonical)
		}
		if value == nil || strings.ContainsFunc(*value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, f.errorf("headers", "the value of %q must be visible ASCII and spaces", name)
		}
		out[canonical] = *value
	}
	return out, nil
}
