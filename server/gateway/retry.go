package gateway

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// retries bounds how often a request is sent again before the first byte of
// its answer. Once a byte came, sending again could bill and act twice, so the
// caller decides.
type retries struct {
	attempts int           // in all, the first included
	base     time.Duration // longest wait after the first; doubles
	most     time.Duration // longest wait of ours
	obey     time.Duration // longest Retry-After that is waited out here
}

var standardRetries = retries{attempts: 4, base: 500 * time.Millisecond, most: 8 * time.Second, obey: 30 * time.Second}

// wait says how long to wait after a failed attempt (counted from 1), and
// whether to try again at all. A Retry-After longer than obey is the caller's
// to wait out: it is told.
func (r retries) wait(attempt int, p *problem) (time.Duration, bool) {
	if !p.resend || attempt >= r.attempts || p.retryAfter > r.obey {
		return 0, false
	}
	if p.retryAfter > 0 {
		return p.retryAfter, true
	}
	ceiling := min(r.base<<(attempt-1), r.most)
	// Between half and all of it, so that callers who failed together do not return together.
	return ceiling/2 + rand.N(ceiling/2+1), true
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readRetryAfter takes both forms of RFC 9110, section 10.2.3. Zero: none, or
// none that can be read.
func readRetryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 && seconds < 86400*365 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// alarm rings once when it was not kicked for limit.
type alarm struct {
	limit time.Duration
	timer *time.Timer
}

func newAlarm(limit time.Duration, ring func()) *alarm {
	return &alarm{limit: limit, timer: time.AfterFunc(limit, ring)}
}

func (a *alarm) kick() { a.timer.Reset(a.limit) }
func (a *alarm) stop() { a.timer.Stop() }
