package anser_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
)

// picks keeps how the instances of calls were chosen.
type picks struct {
	mu   sync.Mutex // guards the fields below
	list []string
	last anser.CallInfo
}

func (p *picks) option() anser.Option {
	return anser.Observe(anser.Observer{CallEnded: func(_ context.Context, c *anser.CallInfo) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = *c
		s := c.Pick.Reason.String()
		for _, a := range c.Attempts {
			s = a.Reason.String() + ", " + s
		}
		p.list = append(p.list, s)
	}})
}

func (p *picks) expect(t *testing.T, name string, want ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.list, want) {
		t.Errorf("%s: picked as %q, want %q", name, p.list, want)
	}
	if p.last.Pick.Balancer == "" || p.last.Address == "" {
		t.Errorf("%s: the call is %+v", name, p.last)
	}
	p.list = nil
}

// An observer learns why a call went to its instance, whatever way it is made.
func TestObserverOfPicks(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, address := range []string{"a:1", "b:1", "c:1"} {
			s := anser.NewServer(silent)
			anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
				switch {
				case string(*in) == "fail":
					return nil, anser.Errorf(anser.NotFound, "no")
				case string(*in) == "twice" && anser.AttemptFrom(ctx) == 0:
					return nil, anser.Aborted
				}
				time.Sleep(time.Second)
				return in, nil
			})
			anser.HandleStream(s, "Echo.Stream", func(ctx context.Context, st *anser.Stream[[]byte, []byte]) error { return nil })
			run(t, s, network.Listen(address))
		}
		p, through := new(picks), false
		pass := anser.Intercept(func(next anser.Func) anser.Func { return next })
		for _, opts := range [][]anser.DialOption{nil, {pass}} {
			through = opts != nil
			c := dial(t, "tcp://a:1,b:1,c:1", append(opts, anser.Dialer(network.Dial), p.option(), anser.Balancer(balance.Sticky()), anser.Idempotent(), anser.RetryOn(anser.Aborted))...)
			in := func(s string) *[]byte { return text(s) }
			say := func(what string, opts ...anser.CallOption) {
				anser.Call[[]byte](t.Context(), c, "Echo.Say", in(what), opts...)
			}
			name := func(s string) string { return fmt.Sprintf("%s, with an interceptor: %v", s, through) }
			say("x")
			p.expect(t, name("a call"), "kept")
			say("fail")
			p.expect(t, name("a call that failed"), "kept")
			say("twice")
			p.expect(t, name("a second attempt"), "kept, instead")
			say("twice", anser.WithFailMode(anser.Failtry))
			p.expect(t, name("failtry"), "kept, again")
			say("x", anser.At("b:1"))
			p.expect(t, name("at"), "named by the caller")
			say("x", anser.WithFailMode(anser.Fork))
			p.expect(t, name("fork"), "fork")
			anser.Go[[]byte](t.Context(), c, "Echo.Say", in("twice")).Wait()
			p.expect(t, name("a future"), "kept, instead")
			anser.Send(t.Context(), c, "Echo.Say", in("x"))
			p.expect(t, name("oneway"), "kept")
			if st, err := anser.Open[[]byte, []byte](t.Context(), c, "Echo.Stream"); err == nil {
				st.Recv()
			}
			p.expect(t, name("a stream"), "kept")
		}
		one := dial(t, "a:1", anser.Dialer(network.Dial), p.option())
		anser.Call[[]byte](t.Context(), one, "Echo.Say", text("x"))
		p.expect(t, "one instance", "the only one")
	})
}

// The route of a call is the router's choice.
func TestObserverOfRoutes(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, address := range []string{"a:1", "b:1", "c:1"} {
			serve(t, network.Listen(address), hello(address))
		}
		r, p := new(testRouter), new(picks)
		r.subset.Store(&anser.Route{Name: "canary", Filters: []anser.Filter{at("a:1", "b:1")}})
		c := dial(t, "a:1,b:1,c:1", anser.Dialer(network.Dial), p.option(), anser.Balancer(balance.RoundRobin()), anser.WithRouter(func(s *anser.RouterContext) (anser.Router, error) {
			s.Report(anser.RulesStatus{Version: 1})
			return r, nil
		}))
		for range 10 {
			if _, err := call(t.Context(), c, "Echo.Who", ""); err != nil {
				t.Fatal(err)
			}
		}
		p.expect(t, "a route of two", slices.Repeat([]string{"in turn"}, 10)...)
		if p.last.Pick != (anser.Pick{Reason: balance.PickedInTurn, Balancer: "round_robin", Route: "canary"}) {
			t.Errorf("picked as %+v", p.last.Pick)
		}
	})
}

// A call whose instance does not answer goes to one that is connected, and says so.
func TestObserverOfMoves(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("b:1"), hello("b:1"))
		p := new(picks)
		c := dial(t, "a:1,b:1", anser.Dialer(network.Dial), p.option(), anser.Balancer(balance.RoundRobin()))
		for range 4 {
			if _, err := call(t.Context(), c, "Echo.Who", ""); err != nil {
				t.Fatal(err)
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if !slices.Contains(p.list, "in turn, connected") && !slices.Contains(p.list, "connected") {
			t.Errorf("picked as %q", p.list)
		}
	})
}
