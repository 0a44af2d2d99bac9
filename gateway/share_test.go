package gateway_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

// slowService has methods that last until their callers give up.
func slowService(s *anser.Server) {
	anser.Handle(s, "Slow.Wait", func(ctx context.Context, _ *args) (*reply, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, anser.Concurrent())
	anser.ServerStreamMethod[args, reply]("Slow.Watch").Handle(s, func(ctx context.Context, _ *args, _ anser.Sender[reply]) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

// busy returns how many calls the gateway says are with a service.
func busy(g *gateway.Gateway, service string) int64 {
	for _, s := range g.Stats().Services {
		if s.Name == service {
			return s.Calls
		}
	}
	return -1
}

// Callers that wait for one service leave room for those of another one.
func TestOneServiceLeavesRoom(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	serve(t, r, registry.Instance{Service: "slow"}, slowService)
	for limits, most := range map[string]int{"calls: 20": 18, "calls: 20, service: 5": 5, "calls: 5": 4} {
		g, addr := start(t, r, parse(t, "limits: {"+limits+"}\n"))
		await(t, g, "arith", 1)
		await(t, g, "slow", 2)
		c, err := anser.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for kind, wait := range map[string]func(ctx context.Context) error{
			"Anser": func(ctx context.Context) error {
				_, err := anser.Call[reply](ctx, c, "Slow.Wait", new(args), anser.Attempts(1))
				return err
			},
			"Anser, a stream": func(ctx context.Context) error {
				st, err := anser.ServerStreamMethod[args, reply]("Slow.Watch").Open(ctx, c, new(args))
				if err == nil {
					_, err = st.Recv()
				}
				return err
			},
			"JSON": func(ctx context.Context) error { return ask(ctx, addr, "/slow/Slow.Wait") },
			"JSON, a stream": func(ctx context.Context) error {
				return ask(ctx, addr, "/slow/Slow.Watch")
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			ends := make(chan error, most)
			for range most {
				go func() { ends <- wait(ctx) }()
			}
			awaitThat(t, "the service has all that it may have", func() bool { return busy(g, "slow") == int64(most) })
			for _, other := range []func(context.Context) error{wait, func(ctx context.Context) error { return ask(ctx, addr, "/Slow.Wait") }} {
				// A refused stream counts until the gateway has ended it, after its client has
				// the error.
				awaitThat(t, "the refused call has left", func() bool { return g.Server().Stats().InFlight == int64(most) })
				err := other(ctx)
				if err == nil || !strings.Contains(err.Error(), "limits.service") {
					t.Errorf("%s, %s: one more call of the service: %v", limits, kind, err)
				}
			}
			if out, err := anser.Call[reply](ctx, c, "Arith.Mul", &args{7, 8}); err != nil || out.C != 56 {
				t.Errorf("%s, %s: the other service: %v", limits, kind, err)
			}
			if err := ask(ctx, addr, "/Arith.Mul"); err != nil {
				t.Errorf("%s, %s: the other service, in JSON: %v", limits, kind, err)
			}
			cancel()
			for range most {
				if err := <-ends; err == nil || strings.Contains(err.Error(), "limits.service") {
					t.Errorf("%s, %s: a call that had room: %v", limits, kind, err)
				}
			}
			awaitThat(t, "all calls have left", func() bool { return busy(g, "slow") == 0 && busy(g, "arith") == 0 })
		}
	}
}

// A service that is the only one may have all calls of the gateway.
func TestTheOnlyServiceHasAllCalls(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "slow"}, slowService)
	g, addr := start(t, r, parse(t, "limits: {calls: 20}\n"))
	await(t, g, "slow", 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ends := make(chan error, 20)
	for range 20 {
		go func() { ends <- ask(ctx, addr, "/slow/Slow.Wait") }()
	}
	awaitThat(t, "it has them", func() bool { return busy(g, "slow") == 20 })
	if err := ask(ctx, addr, "/slow/Slow.Wait"); err == nil || !strings.Contains(err.Error(), "anser.MaxInFlight") {
		t.Errorf("one more: %v", err)
	}
	cancel()
	for range 20 {
		<-ends
	}
}

// ask calls a method in JSON.
func ask(ctx context.Context, addr, path string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, strings.NewReader(`{"A":7,"B":8}`))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(text))
	}
	return err
}

// Connections that clients of HTTP keep for later, and on which nothing has come yet, do not keep
// others from connecting.
func TestUnusedConnections(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	g, addr := start(t, r, new(gateway.Config), anser.HandshakeTimeout(time.Hour))
	await(t, g, "arith", 1)
	for range 500 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
	}
	if err := ask(t.Context(), addr, "/Arith.Mul"); err != nil {
		t.Error(err)
	}
	if s := g.Server().Stats(); s.LimitsHit["MaxHandshakes"] != 0 || s.Accepted < 501 {
		t.Errorf("%d connections, of which %d lost their places", s.Accepted, s.LimitsHit["MaxHandshakes"])
	}
}
