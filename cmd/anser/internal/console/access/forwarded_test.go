package access_test

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
)

var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28"), netip.MustParsePrefix("fd00::/64")}

func TestRemote(t *testing.T) {
	a, err := access.New(t.Context(), access.Options{Users: accesstest.Users(t), Trusted: proxies})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from   string
		header []string
		want   string
	}{
		{"192.0.2.1:1", nil, "192.0.2.1:1"},
		{"192.0.2.1:1", []string{"203.0.113.7"}, "192.0.2.1:1"}, // it is no proxy of ours
		{"10.0.0.5:1", nil, "10.0.0.5:1"},
		{"10.0.0.5:1", []string{"203.0.113.7"}, "203.0.113.7 through 10.0.0.5:1"},
		{"[::ffff:10.0.0.5]:1", []string{"203.0.113.7"}, "203.0.113.7 through [::ffff:10.0.0.5]:1"},
		{"[fd00::1]:1", []string{"2001:db8::7"}, "2001:db8::7 through [fd00::1]:1"},
		{"10.0.0.5:1", []string{"203.0.113.7:4711"}, "203.0.113.7 through 10.0.0.5:1"},
		{"10.0.0.5:1", []string{"[2001:db8::7]:4711"}, "2001:db8::7 through 10.0.0.5:1"},
		{"10.0.0.5:1", []string{"[2001:db8::7]"}, "2001:db8::7 through 10.0.0.5:1"},
		// What is left of the last address comes from the client.
		{"10.0.0.5:1", []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7 through 10.0.0.5:1"},
		{"10.0.0.5:1", []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7 through 10.0.0.5:1"},
		{"10.0.0.5:1", []string{"198.51.100.1, 10.0.0.6"}, "198.51.100.1 through 10.0.0.5:1"},
		{"10.0.0.5:1", []string{"10.0.0.9, 203.0.113.7,10.0.0.6"}, "203.0.113.7 through 10.0.0.5:1"},
		// What is no address ends the way, at the last that is known.
		{"10.0.0.5:1", []string{"198.51.100.1, unknown"}, "10.0.0.5:1"},
		{"10.0.0.5:1", []string{"198.51.100.1, "}, "10.0.0.5:1"},
		{"10.0.0.5:1", []string{"198.51.100.1, x, 10.0.0.6"}, "10.0.0.6 through 10.0.0.5:1"},
		{"10.0.0.5:1", []string{"203.0.113.7\n{}"}, "10.0.0.5:1"},
		{"10.0.0.5:1", []string{"fe80::1%x\ny"}, "fe80::1 through 10.0.0.5:1"},
		{"@", []string{"203.0.113.7"}, "@"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RemoteAddr = c.from
		r.Header["X-Forwarded-For"] = c.header
		if got := a.Remote(r); got != c.want {
			t.Errorf("%s with %q: %q, want %q", c.from, c.header, got, c.want)
		}
	}
}

// Behind a proxy that is trusted each client has a limit of its own, which it cannot get around by
// the header.
func TestFloodsBehindAProxy(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		t.Run(fmt.Sprint(trusted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := access.Options{Users: accesstest.Users(t)}
				if trusted {
					o.Trusted = proxies
				}
				b, _ := bubbleWith(t, o)
				try := func(forwarded, password string) int {
					return b.send("POST", "/api/login", `{"user":"look","password":"`+password+`"}`, "", "10.0.0.5", "X-Forwarded-For", forwarded).Code
				}
				tried := 0
				for n := range 15 {
					if try(fmt.Sprintf("198.51.100.%d, 203.0.113.1", n), "a wrong password") == 401 {
						tried++
					}
				}
				if tried != 10 {
					t.Errorf("%d of 15 logins of a client were tried", tried)
				}
				want := 429
				if trusted {
					want = 204
				}
				if got := try("203.0.113.2", accesstest.Password); got != want {
					t.Errorf("another client: %d, want %d", got, want)
				}
			})
		})
	}
}
