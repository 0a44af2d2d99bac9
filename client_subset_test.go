package anser_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// many returns the instances of a large service.
func many(n int) (list []registry.Instance) {
	for i := range n {
		list = append(list, registry.Instance{Service: "arith", Address: fmt.Sprintf("host-%d:1", i)})
	}
	return list
}

// A client of a large service connects to a part of it, replaces members that fail, and uses all
// under load.
func TestSubsetOfALargeService(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var connected sync.Map
		release := make(chan struct{})
		work := map[string]handler{
			"Echo.Say": echo,
			"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				<-release
				return in, nil
			},
		}
		list := many(128)
		listeners := make(map[string]*ansertest.Listener)
		for _, in := range list {
			listeners[in.Address] = network.Listen(in.Address)
			serve(t, listeners[in.Address], work)
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Balancer(balance.RoundRobin()), anser.Subset(100, 8),
			anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
				connected.Store(address, true)
				return network.Dial(ctx, kind, address)
			}))
		f.instances(list...)
		say := func(n int) {
			for range n {
				if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
					t.Error(err)
				}
			}
		}
		reached := func() (n int) {
			connected.Range(func(any, any) bool { n++; return true })
			return n
		}
		members := func() (all []string) {
			for _, in := range c.Status().Instances {
				if !in.Outside {
					all = append(all, in.Address)
				}
			}
			return all
		}
		say(100)
		first := members()
		if len(first) != 8 || reached() != 8 || c.Status().Subset != 8 {
			t.Fatalf("%d members, %d connected, status %d: want 8", len(first), reached(), c.Status().Subset)
		}
		f.instances(list[:120]...)
		f.instances(list...)
		if again := members(); !slices.Equal(again, first) {
			t.Errorf("instances went and came back: members are %v, were %v", again, first)
		}
		listeners[first[0]].Kill()
		time.Sleep(time.Second)
		say(100)
		second := members()
		if kept := len(slices.DeleteFunc(slices.Clone(second), func(a string) bool { return !slices.Contains(first, a) })); len(second) != 8 || kept != 7 {
			t.Errorf("one of %v is down: members are %v", first, second)
		}
		// Under load the client uses more of them.
		var calls []*result
		for range 64 {
			calls = append(calls, apart(context.Background(), c, "Echo.Wait", text(""), anser.Timeout(0)))
		}
		time.Sleep(5 * time.Second)
		if n := c.Status().Subset; n != 32 {
			t.Errorf("with 64 calls in flight it has %d members: want 32, with two each", n)
		}
		close(release)
		for _, r := range calls {
			if _, err := r.Wait(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		say(32)
		if n := c.Status().Subset; n != 8 {
			t.Errorf("after the load it has %d members: want 8", n)
		}
		open := 0
		for _, in := range c.Status().Instances {
			if in.Connected {
				open++
			}
		}
		if open > 8 {
			t.Errorf("%d instances are connected: want those of the subset", open)
		}
	})
}

// A key must map to the same instance in every client, so such balancers get the whole list.
func TestNoSubset(t *testing.T) {
	for name, opts := range map[string][]anser.DialOption{
		"consistent hash": {anser.Balancer(balance.ConsistentHash())},
		"maglev":          {anser.Balancer(balance.Maglev())},
		"local first":     {anser.Balancer(balance.LocalFirst(balance.Here{Zone: "a"}))},
		"sticky":          {anser.Balancer(balance.Sticky())},
		"off":             {anser.Subset(0, 0)},
		"a push client":   {anser.Handlers(anser.NewServer())},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				f := newFeed()
				c := dial(t, "fed://arith", append(opts, f.scheme(), anser.Dialer(network.Dial))...)
				f.instances(many(150)...)
				if n := c.Status().Subset; n != 0 {
					t.Errorf("there is a subset of %d", n)
				}
			})
		})
	}
}

// When a service is no longer large, all of its instances are used, including any that
// are unreachable at that moment.
func TestSubsetEnds(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		list := many(10)
		listeners := make(map[string]*ansertest.Listener)
		for _, in := range list {
			listeners[in.Address] = network.Listen(in.Address)
			serve(t, listeners[in.Address], map[string]handler{"Echo.Say": echo})
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Balancer(balance.RoundRobin()), anser.Subset(10, 4), anser.Dialer(network.Dial))
		f.instances(list...)
		call(context.Background(), c, "Echo.Say", "")
		var down string
		for _, in := range c.Status().Instances {
			if !in.Outside {
				down = in.Address
			}
		}
		listeners[down].Kill()
		time.Sleep(time.Second)
		call(context.Background(), c, "Echo.Say", "")
		left := slices.DeleteFunc(slices.Clone(list), func(in registry.Instance) bool { return in.Address != down })
		for _, in := range list {
			if in.Address != down && len(left) < 6 {
				left = append(left, in)
			}
		}
		f.instances(left...)
		if c.Status().Subset != 0 {
			t.Fatalf("of 6 instances %d are used", c.Status().Subset)
		}
		for _, in := range c.Status().Instances {
			if in.Outside {
				t.Errorf("%s is outside of a subset that there is not", in.Address)
			}
		}
	})
}
