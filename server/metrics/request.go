package metrics

import (
	"net/http"
	"strings"
	"time"
)

// Route names the route of a request: a pattern of a mux, or empty when there is none.
type Route func(r *http.Request) string

// Requests counts and times what next answers.
func (m *Meter) Requests(route Route, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, seen := time.Now(), &status{ResponseWriter: w}
		where, method := pathOf(route(r), r.URL.Path), methodOf(r.Method)
		class := "aborted" // a panic goes through here, and ends the connection
		defer func() {
			m.requests.WithLabelValues(where, method, class).Inc()
			if seen.code != http.StatusSwitchingProtocols {
				m.requestTook.WithLabelValues(where, method).Observe(time.Since(began).Seconds())
			}
		}()
		next.ServeHTTP(seen, r)
		class = seen.class()
	})
}

// noRoute is where requests are counted that no route answers.
const noRoute = "none"

// pathOf is a pattern without its method. For a path that lacks only its last slash a mux gives out the asked
// path in place of a pattern: that must not become a label.
func pathOf(pattern, asked string) string {
	slash := strings.IndexByte(pattern, '/')
	if slash < 0 || pattern == asked+"/" {
		return noRoute
	}
	return pattern[slash:]
}

func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// status remembers the status of an answer. What else the writer can do is found through Unwrap.
type status struct {
	http.ResponseWriter
	code int // 0: nothing was said
}

func (s *status) WriteHeader(code int) {
	if s.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Write(p []byte) (int, error) {
	if s.code == 0 {
		s.code = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *status) class() string {
	classes := [...]string{"2xx", "1xx", "2xx", "3xx", "4xx", "5xx"} // who says nothing says 200
	if n := s.code / 100; n < len(classes) {
		return classes[n]
	}
	return "5xx"
}
