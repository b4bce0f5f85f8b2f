package auth

import (
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"cairn/domain/fault"
)

// Limits say how often signing in may be tried. Each process counts for itself.
type Limits struct {
	Account rate.Limit // tries a second for one account, in the long run
	Address rate.Limit // and from one address
	Burst   int        // tries at once for one account; four times that from one address
}

// StandardLimits let a person mistype and a guesser guess 2880 times a day, against 100 bits or a password.
var StandardLimits = Limits{Account: rate.Every(30 * time.Second), Address: rate.Every(3 * time.Second), Burst: 10}

// maxBuckets bounds what strangers can make this process remember, per kind.
const maxBuckets = 100_000

type limits struct {
	Limits
	mu                  sync.Mutex
	accounts, addresses map[string]*rate.Limiter
}

func newLimits(l Limits) *limits {
	if l.Burst == 0 {
		l = StandardLimits
	}
	return &limits{Limits: l, accounts: map[string]*rate.Limiter{}, addresses: map[string]*rate.Limiter{}}
}

// Limited is a refusal that says when to try again.
type Limited struct {
	*fault.Fault
	After time.Duration
}

// Unwrap gives the fault to those who only know faults.
func (l *Limited) Unwrap() error { return l.Fault }

// allow takes one try from both buckets, or none and answers *Limited.
func (l *limits) allow(address, account string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	from := bucket(l.addresses, network(address), l.Address, 4*l.Burst, now).ReserveN(now, 1)
	if wait := from.DelayFrom(now); wait > 0 {
		from.CancelAt(now)
		return limited(wait, "this address")
	}
	to := bucket(l.accounts, account, l.Account, l.Burst, now).ReserveN(now, 1)
	if wait := to.DelayFrom(now); wait > 0 {
		to.CancelAt(now)
		return limited(wait, "this account")
	}
	return nil
}

func limited(wait time.Duration, what string) error {
	seconds := int64((wait + time.Second - 1) / time.Second)
	return &Limited{
		Fault: fault.New(fault.Exhausted, "too_many_attempts", "too many attempts for %s: try again in %d seconds", what, seconds),
		After: time.Duration(seconds) * time.Second,
	}
}

// bucket finds or makes one. When there are too many, those that are full again are forgotten, which changes
// nothing; if none is, all are: remembering must not become the weapon.
func bucket(all map[string]*rate.Limiter, key string, every rate.Limit, burst int, now time.Time) *rate.Limiter {
	if b, ok := all[key]; ok {
		return b
	}
	if len(all) >= maxBuckets {
		for k, b := range all {
			if b.TokensAt(now) >= float64(burst) {
				delete(all, k)
			}
		}
		if len(all) >= maxBuckets {
			clear(all)
		}
	}
	b := rate.NewLimiter(every, burst)
	all[key] = b
	return b
}

// network is what one caller can be assumed to own: an IPv4 address, or the /64 around an IPv6 one.
func network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	if ip == nil || ip.To4() != nil {
		return host
	}
	return ip.Mask(net.CIDRMask(64, 128)).String()
}
