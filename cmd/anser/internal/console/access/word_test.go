package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
)

// longBubble returns a console behind a proxy with a long request for operators. ended gets the
// time of each one and the cause of its end.
func longBubble(t *testing.T) (b *bubble, ended <-chan endedRequest) {
	t.Helper()
	b, a := bubbleWith(t, access.Options{Proxy: &access.ProxyOptions{
		Header: "X-User", Roles: "X-Role", From: []netip.Prefix{netip.MustParsePrefix("10.0.0.5/32")},
	}})
	ends := make(chan endedRequest, 10)
	b.mux.Handle("/long", a.WrapLong(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began := time.Now()
		<-r.Context().Done()
		if !a.Over(r.Context()) {
			t.Error("a request that has ended is not over")
		}
		ends <- endedRequest{time.Since(began), context.Cause(r.Context())}
	}), access.Operate))
	return b, ends
}

type endedRequest struct {
	after time.Duration
	cause error
}

// Behind a proxy a long request goes on as long as the proxy names its user with the role.
func TestLongRequestsBehindAProxy(t *testing.T) {
	for _, c := range []struct {
		name  string
		other func(send func(path, user, role string) int) // what comes 60 s after the beginning
		after time.Duration
	}{
		{"no other request", func(func(string, string, string) int) {}, access.WordBound},
		{"a request of the page", func(send func(string, string, string) int) {
			if got := send("/api/session", "ada", "operate"); got != 200 {
				t.Errorf("the status is %d", got)
			}
		}, time.Minute + access.WordBound},
		{"another user", func(send func(string, string, string) int) { send("/look", "bob", "administer") }, access.WordBound},
		{"a lower role", func(send func(string, string, string) int) {
			if got := send("/look", "ada", "look"); got != 200 {
				t.Errorf("the status is %d", got)
			}
		}, time.Minute},
		{"a request that the proxy has not sent", func(send func(string, string, string) int) {
			if got := send("", "ada", "operate"); got != 403 {
				t.Errorf("the status is %d", got)
			}
		}, access.WordBound},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, ended := longBubble(t)
				var wg sync.WaitGroup
				defer wg.Wait()
				wg.Go(func() { b.send("GET", "/long", "", "", "10.0.0.5", "X-User", "ada", "X-Role", "operate") })
				time.Sleep(time.Minute)
				c.other(func(path, user, role string) int {
					from := "10.0.0.5"
					if path == "" {
						path, from = "/look", "10.0.0.6"
					}
					return b.send("GET", path, "", "", from, "X-User", user, "X-Role", role).Code
				})
				if end := <-ended; end.after != c.after || !errors.Is(end.cause, access.ErrNoWord) {
					t.Errorf("it has ended after %v with %v, want %v", end.after, end.cause, c.after)
				}
			})
		})
	}
}

// A long request ends after the time of a session, whatever the proxy says.
func TestLongRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ended := longBubble(t)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { b.send("GET", "/long", "", "", "10.0.0.5", "X-User", "ada", "X-Role", "operate") })
		for range 12 * 60 {
			if len(ended) > 0 {
				t.Fatal("it has ended before")
			}
			time.Sleep(time.Minute)
			b.send("GET", "/look", "", "", "10.0.0.5", "X-User", "ada", "X-Role", "operate")
		}
		if end := <-ended; end.after != 12*time.Hour || !errors.Is(end.cause, access.ErrNoWord) {
			t.Errorf("it has ended after %v with %v", end.after, end.cause)
		}
	})
}
