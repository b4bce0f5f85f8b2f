package auth

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"cairn/domain/fault"
)

func TestLimitsSayWhenToTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits(Limits{Account: rate.Every(30 * time.Second), Address: rate.Every(time.Second), Burst: 2})
		for range 2 {
			if err := l.allow("192.0.2.1:99", "a"); err != nil {
				t.Fatal(err)
			}
		}
		err := l.allow("192.0.2.2:99", "a")
		limited, ok := errors.AsType[*Limited](err)
		if !ok || limited.After != 30*time.Second || fault.KindOf(err) != fault.Exhausted {
			t.Fatalf("the third attempt: %v", err)
		}
		if err := l.allow("192.0.2.2:99", "b"); err != nil {
			t.Errorf("another account waits too: %v", err)
		}
		time.Sleep(limited.After)
		if err := l.allow("192.0.2.1:100", "a"); err != nil {
			t.Errorf("after the wait that was named: %v", err)
		}
	})
}

// TestRefusedAttemptsCostNothing keeps whoever is limited at one place from using up the other.
func TestRefusedAttemptsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits(Limits{Account: 0.001, Address: 0.001, Burst: 1})
		for i := range 4 {
			if err := l.allow("192.0.2.1:1", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if l.allow("192.0.2.1:1", "victim") == nil {
			t.Fatal("the fifth attempt from one address was let through")
		}
		if err := l.allow("192.0.2.9:1", "victim"); err != nil {
			t.Errorf("the account pays for what was refused by address: %v", err)
		}
	})
}

func TestBucketsAreBounded(t *testing.T) {
	l := newLimits(Limits{Account: 1, Address: 1, Burst: 1})
	for i := range maxBuckets + 10 {
		l.allow(fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>16, i&0xffff), fmt.Sprint(i))
	}
	if len(l.addresses) > maxBuckets || len(l.accounts) > maxBuckets {
		t.Errorf("%d addresses and %d accounts are remembered", len(l.addresses), len(l.accounts))
	}
}

func TestNetworkOfAddress(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:4000": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::", "[::ffff:192.0.2.1]:80": "::ffff:192.0.2.1", "nonsense": "nonsense",
	} {
		if got := network(address); got != want {
			t.Errorf("%s belongs to %s, want %s", address, got, want)
		}
	}
}

func TestPlainCookieOnlyOnTheOwnMachine(t *testing.T) {
	for _, c := range []struct {
		peer, host string
		tls        bool
		want       string
	}{
		{"127.0.0.1:5", "127.0.0.1:8080", false, cookiePlain},
		{"[::1]:5", "localhost:8080", false, cookiePlain},
		{"127.0.0.1:5", "localhost", true, cookieName},
		{"127.0.0.1:5", "cairn.example.test", false, cookieName}, // a proxy on this machine
		{"192.0.2.1:5", "127.0.0.1:8080", false, cookieName},
		{"127.0.0.1:5", "127.0.0.1.example.test", false, cookieName},
		{"127.0.0.1:5", "", false, cookieName},
	} {
		r := &http.Request{RemoteAddr: c.peer, Host: c.host}
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := SetCookie(r, "t"); got.Name != c.want || got.Secure != (c.want == cookieName) {
			t.Errorf("%s to %s: %s, secure %v", c.peer, c.host, got.Name, got.Secure)
		}
	}
}
