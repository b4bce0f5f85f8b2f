package metrics_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/event"
	"cairn/server"
)

// world is a real server on a real database.
type world struct {
	t            *testing.T
	base         *dbtest.Database
	db           *db.DB
	team         dbtest.Team
	conversation event.ID
	url          string
	own          string // of /metrics alone, if there is such an address
}

// newWorld serves; listen changes the listener, and with own there is one for metrics.
func newWorld(t *testing.T, own bool, listen func(net.Listener) net.Listener, change ...func(*db.Options)) *world {
	t.Helper()
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server, change...)
	w := &world{t: t, base: base, db: d, team: dbtest.NewTeam(t, d, "demo")}
	w.conversation = w.team.Converse(t, d)
	o := server.Options{DB: d, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if own {
		o.Metrics = listenLocal(t)
		w.own = "http://" + o.Metrics.Addr().String()
	}
	s, err := server.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	listener := listenLocal(t)
	w.url = "http://" + listener.Addr().String()
	if listen != nil {
		listener = listen(listener)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ctx, listener); err != nil && err != http.ErrServerClosed {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		serving.Wait()
	})
	return w
}

func listenLocal(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// ask sends a request without a body; header has names and values in turn.
func (w *world) ask(method, url string, header ...string) (int, http.Header, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(body)
}

// scrape is one answer of /metrics.
type scrape map[string]*dto.MetricFamily

func (w *world) scrape() scrape {
	w.t.Helper()
	status, header, body := w.ask(http.MethodGet, w.url+"/metrics")
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") || header.Get("Cache-Control") != "no-store" {
		w.t.Fatalf("/metrics answered %d %v: %.300s", status, header, body)
	}
	return parse(w.t, body)
}

func parse(t *testing.T, body string) scrape {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("not the text format: %v\n%s", err, body)
	}
	return families
}

// value is of the metric with these labels, names and values in turn; for a histogram its count. ok is false when
// there is none.
func (s scrape) value(name string, labels ...string) (value float64, ok bool) {
	for _, m := range s[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		same := len(has) == len(labels)/2
		for i := 0; i < len(labels); i += 2 {
			same = same && has[labels[i]] == labels[i+1]
		}
		switch {
		case !same:
		case m.Counter != nil:
			return m.Counter.GetValue(), true
		case m.Gauge != nil:
			return m.Gauge.GetValue(), true
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount()), true
		}
	}
	return 0, false
}

// want fails unless the metric has the value.
func (s scrape) want(t *testing.T, value float64, name string, labels ...string) {
	t.Helper()
	if got, ok := s.value(name, labels...); !ok || got != value {
		t.Errorf("%s %v is %v (there: %v), want %v", name, labels, got, ok, value)
	}
}

// eventually scrapes until the test is content.
func (w *world) eventually(what string, content func(scrape) bool) scrape {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		s := w.scrape()
		if content(s) {
			return s
		}
		if time.Now().After(end) {
			w.t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// problem reads the code of a problem document.
func problem(t *testing.T, body string) (code string) {
	t.Helper()
	var p struct{ Code string }
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("not a problem: %.200s", body)
	}
	return p.Code
}
