package access_test

import (
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
)

// The console does not learn when a user logs out at a proxy: a request that stays open ends, and
// one that was open for as long changes nothing.
func TestRequestsEndBehindAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a := bubbleWith(t, access.Options{Proxy: &access.ProxyOptions{
			Header: "X-User", Role: access.Look, From: []netip.Prefix{netip.MustParsePrefix("10.0.0.5/32")},
		}})
		began := time.Now()
		if w := b.send("GET", "/open", "", "", "10.0.0.5", "X-User", "ada"); w.Code != 200 || time.Since(began) != access.ProxyBound {
			t.Errorf("%d after %v", w.Code, time.Since(began))
		}
		b.mux.Handle("/slow", a.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(access.ProxyBound - time.Second)
			if a.Over(r.Context()) {
				t.Error("a request is over before its end")
			}
			time.Sleep(2 * time.Second)
			if !a.Over(r.Context()) {
				t.Error("a request is not over after its end")
			}
		}), access.Look))
		b.send("GET", "/slow", "", "", "10.0.0.5", "X-User", "ada")
	})
}

// No user has the name of the console, or of users without a login.
func TestNamesOfTheConsole(t *testing.T) {
	v := start(t, access.Options{Proxy: &access.ProxyOptions{
		Header: "X-User", Role: access.Look, From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}}).viewer(t)
	for _, name := range []string{"console", "CONSOLE", "this machine"} {
		v.expect(403, "GET", "/look", "", "X-User", name)
		if err := access.SetUser(t.TempDir()+"/users.json", name, access.Look, accesstest.Password); err == nil {
			t.Errorf("%q is a user", name)
		}
	}
	v.expect(200, "GET", "/look", "", "X-User", "consoles")
}
