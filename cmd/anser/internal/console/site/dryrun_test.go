package site_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
	"github.com/anser-rpc/anser/telemetry"
)

type number struct{ N int }

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// page serves the admin page of a process and returns its address.
func page(t *testing.T, m *telemetry.Meter, name string) string {
	t.Helper()
	p, err := admin.New(m, admin.Name(name), admin.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Serve(l) }()
	t.Cleanup(func() {
		p.Close()
		if err := <-done; !errors.Is(err, admin.ErrClosed) {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String() + "/"
}

// serve starts an instance of the service arith.
func serve(t *testing.T, reg registry.Registrar, id, version string) {
	t.Helper()
	s := anser.NewServer(silent, anser.NoSignals(), anser.Announce(reg, registry.Instance{Service: "arith", ID: id, Version: version}))
	if err := anser.Handle(s, "Arith.Next", func(_ context.Context, q *number) (*number, error) { return &number{q.N + 1}, nil }); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
}

// scheme lets clients find services in a registry in memory.
func scheme(reg *registry.Memory) registry.Scheme {
	return registry.Scheme{Name: "memory", Open: func(u *url.URL) (registry.Resolver, string, error) {
		return reg.Join(), strings.Trim(u.Path, "/"), nil
	}}
}

// callAlways calls the service arith from a process with an admin page until the test ends.
func callAlways(t *testing.T, reg *registry.Memory) (adminPage string) {
	t.Helper()
	m := telemetry.New()
	c, err := anser.Dial("memory:///arith", scheme(reg), silent, anser.NoSnapshot(), route.Rules(), m.Option())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			var out number
			c.Call(ctx, "Arith.Next", &number{1}, &out) //nits:ignore errcheck the last one is cancelled
		}
	})
	t.Cleanup(func() { stop(); wg.Wait(); c.Close() })
	return page(t, m, "caller")
}

// A dry run says which of the calls that are made now would go elsewhere.
func TestDryRunOfLiveCalls(t *testing.T) {
	reg := registry.NewMemory()
	serve(t, reg, "one", "1.0")
	serve(t, reg, "two", "2.0")
	b := newBrowser(t, openWith(t, reg, site.Options{Pages: []string{callAlways(t, reg)}}).URL())
	b.session()
	var report struct {
		Calls, Moved, From int
		Now                struct{ Moved int }
		Moves              []struct {
			Method, From string
			To           []string
			Calls        int
		}
		Advice string
	}
	body, err := json.Marshal(map[string]string{"text": "rules:\n  groups:\n  - version: \"2.0\"\n    strict: true\n"})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); report.Moved == 0; time.Sleep(100 * time.Millisecond) {
		status, text, _ := b.send("POST", "/api/rules/arith/dryrun", string(body))
		if err := json.Unmarshal([]byte(text), &report); status != 200 || err != nil {
			t.Fatalf("%d %s", status, text)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no call is seen: %+v", report)
		}
	}
	if report.From != 1 || report.Now.Moved != 0 || report.Moved >= report.Calls || len(report.Moves) != 1 {
		t.Errorf("the report is %+v", report)
	}
	if m := report.Moves[0]; m.Method != "Arith.Next" || m.From != "one" || !slices.Equal(m.To, []string{"two"}) || m.Calls != report.Moved {
		t.Errorf("the report is %+v", report)
	}
}
