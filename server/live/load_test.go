package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// crowdEnv makes the test binary the clients of TestCrowd: "address topic sockets events".
const crowdEnv = "CAIRN_LIVE_CROWD"

// crowdReport is what those clients print.
type crowdReport struct {
	Complete int     `json:"complete"` // sockets that got every event
	Repeats  int     `json:"repeats"`
	Frames   int     `json:"frames"`
	P50MS    float64 `json:"p50_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

// TestCrowd measures; only completeness fails it. The clients are a process of their own, so that the memory is
// the server's.
func TestCrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("a load test")
	}
	const sockets, seconds, perSecond = 1000, 4, 25 // a post has two events
	w := newWorld(t)
	r := w.replica()
	w.settled()
	before := len(w.facts(w.conversation))
	idle := memory()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d", crowdEnv, r.url(), w.conversation, sockets, before+2*seconds*perSecond+1))
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	wait(t, "all sockets are live", func() bool { return r.hub.Stats().Replayed == int64(sockets*before) })
	connected := memory()
	var most int64
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for i := range seconds * perSecond {
		<-tick.C
		w.team.Post(t, w.db, w.conversation, fmt.Sprintf("message %d for everybody in the room", i))
		if i%perSecond == perSecond/2 {
			most = max(most, memory())
		}
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("clients: %v\n%s", err, errs.String())
		}
	case <-time.After(60 * time.Second):
		command.Process.Kill()
		t.Fatalf("the clients do not end: %+v", r.hub.Stats())
	}
	var report crowdReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	stats := r.hub.Stats()
	t.Logf("%d sockets, %d events/s: %+v", sockets, 2*perSecond, report)
	t.Logf("memory per socket: connected %d bytes, under load %d bytes (with garbage)", (connected-idle)/sockets, (most-idle)/sockets)
	t.Logf("%+v", stats)
	if report.Complete != sockets || report.Repeats != 0 {
		t.Errorf("%d of %d sockets got everything, %d repeats", report.Complete, sockets, report.Repeats)
	}
	if total := int64(len(w.facts(w.conversation))); stats.Encoded > total {
		t.Errorf("%d events were serialised %d times", total, stats.Encoded)
	}
}

// memory is what the process holds for heap and stacks after a collection.
func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func crowd(spec string) int {
	fields := strings.Fields(spec)
	sockets, _ := strconv.Atoi(fields[2])
	events, _ := strconv.Atoi(fields[3])
	var mu sync.Mutex
	var report crowdReport
	var ages []time.Duration
	var all sync.WaitGroup
	dialing := make(chan struct{}, 20)
	for range sockets {
		all.Go(func() {
			dialing <- struct{}{}
			ws, _, err := connect(fields[0], http.Header{"Cookie": {"session=owner"}})
			<-dialing
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			defer ws.CloseNow()
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
			defer cancel()
			ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"subscribe","topic":%q,"after":0}`, fields[1]))
			seen, repeats, mine := watchCrowd(ctx, ws, events)
			mu.Lock()
			defer mu.Unlock()
			ages = append(ages, mine...)
			report.Frames += seen
			report.Repeats += repeats
			if seen == events {
				report.Complete++
			}
		})
	}
	all.Wait()
	slices.Sort(ages)
	at := func(q float64) float64 {
		if len(ages) == 0 {
			return 0
		}
		return float64(ages[int(q*float64(len(ages)-1))].Microseconds()) / 1000
	}
	report.P50MS, report.P99MS, report.MaxMS = at(0.5), at(0.99), at(1)
	json.NewEncoder(os.Stdout).Encode(report)
	return 0
}

// watchCrowd reads until it has seen the number of events, and notes how old those were that came live. It
// looks for the fields by their bytes: parsing would measure the clients.
func watchCrowd(ctx context.Context, ws *websocket.Conn, events int) (seen, repeats int, ages []time.Duration) {
	isLive, last := false, int64(0)
	for seen < events {
		_, data, err := ws.Read(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		now := time.Now()
		for _, part := range bytes.Split(data, []byte(`{"type":"`))[1:] {
			if bytes.HasPrefix(part, []byte("live")) {
				isLive = true
			}
			if !bytes.HasPrefix(part, []byte("event")) {
				continue
			}
			seen++
			position, _ := strconv.ParseInt(string(between(part, `"position":`, ",")), 10, 64)
			if position <= last {
				repeats++
			}
			last = position
			if at, err := time.Parse(time.RFC3339Nano, string(between(part, `"at":"`, `"`))); err == nil && isLive {
				ages = append(ages, now.Sub(at))
			}
		}
	}
	return
}

func between(data []byte, before, after string) []byte {
	_, rest, _ := bytes.Cut(data, []byte(before))
	value, _, _ := bytes.Cut(rest, []byte(after))
	return value
}
