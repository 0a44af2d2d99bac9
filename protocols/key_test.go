package protocols_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
)

// A request with a key runs once, over each of the protocols and both versions of HTTP, and a
// repeat gets the first answer over any of them that has the same messages.
func TestIdempotencyKeys(t *testing.T) {
	var ran atomic.Int64
	s, address := serve(t)
	anser.Handle(s, "Orders.Place", func(ctx context.Context, in *args) (*reply, error) {
		n := ran.Add(1)
		anser.SetTrailer(ctx, "key", anser.IdempotencyKeyFrom(ctx))
		if in.B < 0 {
			return nil, anser.Errorf(anser.NotFound, "run %d", n)
		}
		return &reply{int(n)}, nil
	}, anser.Deduplicate())
	anser.Handle(s, "Orders.Find", func(context.Context, *args) (*reply, error) { return &reply{1}, nil }, anser.Idempotent())
	for version, c := range clients(t) {
		post := func(path, body string, headers ...string) (int, string, http.Header) {
			t.Helper()
			resp := send(t, c, "http://"+address+path, body, headers...)
			return resp.StatusCode, text(t, resp), resp.Header
		}
		check := func(what, path, body string, status int, answer string, headers ...string) {
			t.Helper()
			got, b, _ := post(path, body, headers...)
			if got != status || !strings.Contains(b, answer) {
				t.Errorf("%s, %s: %d %s, want %d %s", version, what, got, b, status, answer)
			}
		}
		ran.Store(0)
		key := "k" + strings.ReplaceAll(version, "/", "")
		_, first, head := post("/Orders.Place", `{"A":1}`, "Idempotency-Key", `"`+key+`"`)
		if first != `{"C":1}` || head.Get("Trailer-Key") != key {
			t.Errorf("%s: %s, %v", version, first, head)
		}
		for range 2 {
			check("a repeat", "/Orders.Place", `{"A":1}`, 200, `{"C":1}`, "Idempotency-Key", key)
			check("a repeat over Connect", "/Orders/Place", `{"A":1}`, 200, `{"C":1}`, "Idempotency-Key", key, "Anser-Repeated", "true")
			check("a repeat over JSON-RPC", "/jsonrpc", `{"jsonrpc":"2.0","method":"Orders.Place","params":{"A":1},"id":7}`, 200, `"result":{"C":1}`, "Idempotency-Key", key)
			check("an error", "/Orders.Place", `{"B":-1}`, 404, "run 2", "Idempotency-Key", key+"-error")
		}
		if ran.Load() != 2 {
			t.Errorf("%s: ran %d times, want 2", version, ran.Load())
		}
		check("another request", "/Orders.Place", `{"A":2}`, 422, `"outcome":"refused"`, "Idempotency-Key", key)
		check("another request over Connect", "/Orders/Place", `{"A":2}`, 400, "failed_precondition", "Idempotency-Key", key)
		check("an unknown key that may have run", "/Orders.Place", `{"A":1}`, 503, `"outcome":"unknown"`, "Idempotency-Key", key+"-new", "Anser-Repeated", "true")
		check("no key", "/Orders.Place", `{"A":1}`, 400, "invalid_argument", "Idempotency-Key", "")
		check("an open quote", "/Orders.Place", `{"A":1}`, 400, "invalid_argument", "Idempotency-Key", `"k`)
		check("a long key", "/Orders.Place", `{"A":1}`, 400, "invalid_argument", "Idempotency-Key", strings.Repeat("k", 129))
		check("a wrong flag", "/Orders.Place", `{"A":1}`, 400, "invalid_argument", "Idempotency-Key", "k", "Anser-Repeated", "maybe")
		check("a batch", "/jsonrpc", `[{"jsonrpc":"2.0","method":"Orders.Place","params":{"A":1},"id":7}]`, 200, "-32600", "Idempotency-Key", key)
		check("a method without keys", "/Arith.Mul", `{"A":1}`, 501, "anser.Deduplicate", "Idempotency-Key", key)
		check("a method without keys over JSON-RPC", "/jsonrpc", `{"jsonrpc":"2.0","method":"Arith.Mul","params":{"A":1},"id":7}`, 200, "anser.Deduplicate", "Idempotency-Key", key)
		check("an idempotent method", "/Orders.Find", `{"A":1}`, 200, `{"C":1}`, "Idempotency-Key", key)
		check("metadata of Connect", "/Arith/Mul", `{"A":2,"B":3}`, 200, `{"C":6}`, "Idempotency-Key", key)
		if ran.Load() != 2 {
			t.Errorf("%s: ran %d times after what was refused, want 2", version, ran.Load())
		}
	}
}

// A caller that is gone does not end its call with a key: it comes back for the reply, and waits
// for it if the first call still runs.
func TestKeysOutliveRequests(t *testing.T) {
	for version, c := range clients(t) {
		var ran atomic.Int64
		began, end := make(chan struct{}, 10), make(chan struct{})
		s, address := serve(t)
		anser.Handle(s, "Orders.Wait", func(ctx context.Context, in *args) (*reply, error) {
			ran.Add(1)
			began <- struct{}{}
			<-end
			return &reply{in.A}, ctx.Err()
		}, anser.Deduplicate())
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			r, _ := http.NewRequestWithContext(ctx, "POST", "http://"+address+"/Orders.Wait", strings.NewReader(`{"A":5}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", "k")
			if resp, err := c.Do(r); err == nil {
				resp.Body.Close()
				t.Errorf("%s: a reply before the end", version)
			}
		}()
		<-began
		cancel()
		<-gone
		answer := make(chan string, 1)
		go func() {
			resp := send(t, c, "http://"+address+"/Orders.Wait", `{"A":5}`, "Idempotency-Key", "k")
			answer <- text(t, resp)
		}()
		for s.Stats().InFlight < 2 {
			select {
			case got := <-answer:
				t.Fatalf("%s: the repeat does not wait: %s", version, got)
			default:
			}
		}
		close(end)
		if got := <-answer; got != `{"C":5}` || ran.Load() != 1 {
			t.Errorf("%s: %s, ran %d times", version, got, ran.Load())
		}
	}
}
