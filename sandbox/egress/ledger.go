package egress

import (
	"strings"
	"sync"
	"time"
)

// Decision is what was decided for one or more equal requests. It holds nothing of a query, a header or a body.
type Decision struct {
	Allowed bool    `json:"allowed"`
	Rule    string  `json:"rule"`    // tier/host of the rule that allowed it; empty when refused
	Reason  string  `json:"reason"`  // of the refusal, one of the Reason constants; empty when allowed
	Host    string  `json:"host"`    // as it was asked for; empty: nothing that could be one
	Port    int     `json:"port"`    // 0: unknown
	Method  string  `json:"method"`  // CONNECT for a tunnel, or for a connection that was refused
	Path    *string `json:"path"`    // without the query, cut at 256 bytes; null: not seen
	Request *string `json:"request"` // host named by the request itself; null: not seen, as in a tunnel
	Inject  bool    `json:"inject"`  // a secret was added
	Count   int64   `json:"count"`
}

// Batch is what was decided since the last one.
type Batch struct {
	Decisions []Decision `json:"decisions"` // different ones, in the order of their first request
	Allowed   int64      `json:"allowed"`   // requests
	Refused   int64      `json:"refused"`
	Unlisted  int64      `json:"unlisted"` // requests of which the decision is counted above but not listed: too many different ones
}

// Counts are totals.
type Counts struct {
	Allowed int64 `json:"allowed"`
	Refused int64 `json:"refused"`
}

const (
	firstBatch  = time.Second      // after the first decision; then twice as long, up to lastBatch
	lastBatch   = 30 * time.Second // so that a long run makes a bounded number of batches
	maxDistinct = 100              // decisions of one batch
	maxShown    = 256              // bytes of a path
)

type key struct {
	allowed, inject, hasPath, hasRequest bool
	rule, reason, host, method           string
	path, request                        string
	port                                 int
}

// ledger counts decisions and hands them on in batches: one goroutine, one batch at a time.
type ledger struct {
	on func(Batch)

	mu    sync.Mutex
	batch Batch
	index map[key]int
	total Counts

	stop, done chan struct{}
}

func newLedger(on func(Batch)) *ledger {
	l := &ledger{on: on, index: map[key]int{}, stop: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *ledger) run() {
	defer close(l.done)
	wait := firstBatch
	tick := time.NewTimer(wait)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if l.flush() {
				wait = min(2*wait, lastBatch)
			}
			tick.Reset(wait)
		case <-l.stop:
			l.flush()
			return
		}
	}
}

// close hands the last batch on. Nothing may be recorded after it.
func (l *ledger) close() {
	close(l.stop)
	<-l.done
}

func (l *ledger) flush() bool {
	l.mu.Lock()
	b := l.batch
	l.batch, l.index = Batch{}, map[key]int{}
	l.mu.Unlock()
	some := b.Allowed+b.Refused > 0
	if some && l.on != nil {
		l.on(b)
	}
	return some
}

func (l *ledger) record(d Decision) {
	k := key{allowed: d.Allowed, inject: d.Inject, rule: d.Rule, reason: d.Reason, host: d.Host, method: d.Method, port: d.Port}
	if d.Path != nil {
		path := shown(*d.Path)
		d.Path, k.hasPath, k.path = &path, true, path
	}
	if d.Request != nil {
		k.hasRequest, k.request = true, *d.Request
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.Allowed {
		l.batch.Allowed++
		l.total.Allowed++
	} else {
		l.batch.Refused++
		l.total.Refused++
	}
	if i, ok := l.index[k]; ok {
		l.batch.Decisions[i].Count++
		return
	}
	if len(l.batch.Decisions) >= maxDistinct {
		l.batch.Unlisted++
		return
	}
	d.Count = 1
	l.index[k] = len(l.batch.Decisions)
	l.batch.Decisions = append(l.batch.Decisions, d)
}

// methodName is a method as standards have them, and OTHER for what a client may write in its place.
func methodName(m string) string {
	if len(m) > 32 || strings.ContainsFunc(m, func(c rune) bool { return (c < 'A' || c > 'Z') && c != '-' }) {
		return "OTHER"
	}
	return m
}

// shown keeps printable ASCII, of which every path on the wire consists, and cuts it.
func shown(s string) string {
	b := []byte(s[:min(len(s), maxShown)])
	for i, c := range b {
		if c < 0x20 || c > 0x7e {
			b[i] = '?'
		}
	}
	return string(b)
}

func (l *ledger) counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
