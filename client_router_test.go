package anser_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
)

// testRouter sends all calls to the route that it holds.
type testRouter struct {
	subset     atomic.Pointer[anser.Route]
	panics     atomic.Bool
	intercepts atomic.Bool
	calls      atomic.Int64 // calls that went through its interceptor
}

func (r *testRouter) Route(context.Context, string, anser.Metadata) *anser.Route {
	if r.panics.Load() {
		panic("router")
	}
	return r.subset.Load()
}

func (r *testRouter) Intercepts(string) bool { return r.intercepts.Load() }

func (r *testRouter) Intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		r.calls.Add(1)
		inv.SetAttempts(1)
		inv.SetMode(anser.Failfast)
		return next(ctx, inv)
	}
}

func at(addresses ...string) anser.Filter {
	return anser.Filter{Name: strings.Join(addresses, " "), Keep: func(in *registry.Instance) bool {
		for _, a := range addresses {
			if in.Address == a {
				return true
			}
		}
		return false
	}}
}

func TestSteer(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1", "c:1"} {
			serve(t, network.Listen(a), hello(a))
		}
		r := new(testRouter)
		var steering *anser.RouterContext
		c := dial(t, "a:1,b:1,c:1", anser.Dialer(network.Dial), anser.WithRouter(func(s *anser.RouterContext) (anser.Router, error) {
			steering = s
			s.Report(anser.RulesStatus{Version: 7})
			return r, nil
		}))
		who := func() map[string]bool {
			t.Helper()
			got := make(map[string]bool)
			for range 60 {
				name, err := call(t.Context(), c, "Echo.Who", "")
				if err != nil {
					t.Fatal(err)
				}
				got[name] = true
			}
			return got
		}
		if got := who(); len(got) != 3 {
			t.Errorf("without a subset %v answered, want all", got)
		}
		r.subset.Store(&anser.Route{Name: "two", Filters: []anser.Filter{at("a:1", "b:1"), at("b:1", "c:1"), at("nobody")}})
		if got := who(); len(got) != 1 || !got["b:1"] {
			t.Errorf("%v answered, want b:1", got)
		}
		if st := c.Status().Rules; st == nil || st.Version != 7 {
			t.Errorf("status of the rules %+v, want version 7", st)
		}
		steering.Adjust(func(in registry.Instance) registry.Instance {
			if in.Address == "b:1" {
				in.State = registry.Disabled
			}
			in.Address = "elsewhere:1" // has no effect
			return in
		})
		if got := who(); len(got) != 1 || !got["a:1"] { // the second filter is skipped
			t.Errorf("%v answered with b disabled, want a:1", got)
		}
		steering.Adjust(nil)
		if got := who(); len(got) != 1 || !got["b:1"] {
			t.Errorf("%v answered with b back, want b:1", got)
		}

		r.intercepts.Store(true)
		who()
		if r.calls.Load() != 60 {
			t.Errorf("%d calls went through the interceptor, want those of the last 60", r.calls.Load())
		}

		r.subset.Store(&anser.Route{Name: "bad", Filters: []anser.Filter{{Name: "bad", Strict: true, Keep: func(*registry.Instance) bool { panic("filter") }}}})
		_, err := call(t.Context(), c, "Echo.Who", "")
		if e := wantFault(t, err, anser.Unavailable, anser.NotSent); !strings.Contains(e.Message, "(bad)") {
			t.Errorf("%v: want the name of the subset", err)
		}
		r.panics.Store(true)
		_, err = call(t.Context(), c, "Echo.Who", "")
		wantFault(t, err, anser.Internal, anser.NotSent)
	})
}

// A call with At has named its instance: the route does not apply to it, the interceptor does.
func TestSteerAndAt(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1"} {
			serve(t, network.Listen(a), hello(a))
		}
		r := new(testRouter)
		only := at("a:1")
		only.Strict = true
		r.subset.Store(&anser.Route{Name: "a", Filters: []anser.Filter{only}})
		r.intercepts.Store(true)
		c := dial(t, "a:1,b:1", anser.Dialer(network.Dial), anser.WithRouter(func(s *anser.RouterContext) (anser.Router, error) {
			s.Report(anser.RulesStatus{Version: 1})
			return r, nil
		}))
		list, err := c.Instances(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range list {
			if name, err := call(t.Context(), c, "Echo.Who", "", anser.At(in.Key())); name != in.Address || err != nil {
				t.Errorf("%q answered, want %s: %v", name, in.Address, err)
			}
		}
		if name, err := call(t.Context(), c, "Echo.Who", ""); name != "a:1" || err != nil {
			t.Errorf("%q answered without At, want a:1: %v", name, err)
		}
		if n := r.calls.Load(); n != 3 {
			t.Errorf("%d calls went through the interceptor, want 3", n)
		}
	})
}

func TestSteerThatCannotStart(t *testing.T) {
	for say, start := range map[string]func(*anser.RouterContext) (anser.Router, error){
		"no rules here":      func(*anser.RouterContext) (anser.Router, error) { return nil, errors.New("no rules here") },
		"returned no router": func(*anser.RouterContext) (anser.Router, error) { return nil, nil },
		"is nil":             nil,
	} {
		if _, err := anser.Dial("127.0.0.1:1", anser.WithRouter(start)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("Dial = %v, want %q", err, say)
		}
	}
}
