package anser_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/registry"
)

// A call that waits for a connection to an instance goes elsewhere when the instance moves.
func TestInstanceMovesWhileACallWaitsForItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("new:1"), map[string]handler{"Echo.Say": echo})
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			if address == "old:1" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return network.Dial(ctx, kind, address)
		}))
		f.instances(registry.Instance{Service: "arith", ID: "one", Address: "old:1"})
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"))
		synctest.Wait()
		f.instances(registry.Instance{Service: "arith", ID: "one", Address: "new:1"})
		if out, err := reply.Wait(); err != nil || string(*out) != "hello" {
			t.Fatal(err)
		}
	})
}

// conns returns the number of connections that the server has open.
func conns(s *anser.Server) int { return s.Stats().Conns }

// A list that names an instance twice, as a registry should not, does no harm.
func TestInstanceListedTwice(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		other := serve(t, network.Listen("b:1"), map[string]handler{"Echo.Say": echo})
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial))
		f.list("a:1", "a:1", "b:1")
		for range 20 {
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(c.Status().Instances); n != 2 {
			t.Errorf("%d instances, want 2", n)
		}
		f.list("b:1")
		synctest.Wait()
		time.Sleep(time.Second) // until the instance's last calls would have ended
		if n := conns(s); n != 0 {
			t.Errorf("%d connections to an instance that is gone", n)
		}
		if conns(other) == 0 {
			t.Error("no connection to the instance that is left")
		}
	})
}

// An instance that was kept because too many went at once goes when the registry says that it takes
// no calls.
func TestHeldInstanceIsWithdrawn(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1", "c:1"} {
			serve(t, network.Listen(a), map[string]handler{"Echo.Say": echo})
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial))
		f.list("a:1", "b:1", "c:1")
		f.list("a:1")
		if n := len(c.Status().Instances); n != 3 {
			t.Fatalf("%d instances, want 3", n)
		}
		f.instances(registry.Instance{Service: "arith", Address: "a:1"},
			registry.Instance{Service: "arith", Address: "b:1", State: registry.Draining})
		var left []string
		for _, in := range c.Status().Instances {
			left = append(left, in.Address)
		}
		if !slices.Equal(left, []string{"a:1", "c:1"}) {
			t.Error(left)
		}
	})
}

// hello returns a handler that replies with the name of its server.
func hello(name string) map[string]handler {
	return map[string]handler{"Echo.Who": func(context.Context, *[]byte) (*[]byte, error) { return text(name), nil }}
}

// reach makes n calls and returns how many each server answered; no call may fail.
func reach(t *testing.T, c *anser.Client, n int) map[string]int {
	t.Helper()
	who := make(map[string]int)
	for range n {
		out, err := call(context.Background(), c, "Echo.Who", "")
		if err != nil {
			t.Fatal(err)
		}
		who[out]++
	}
	return who
}

// An outage of the registry, however long, fails no call and shows in the status.
func TestRegistryOutage(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1"} {
			serve(t, network.Listen(a), hello(a))
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
		f.list("a:1", "b:1")
		updated := time.Now()
		reach(t, c, 4)
		f.down(errors.New("etcd is gone"))
		for range 10 {
			time.Sleep(time.Hour)
			if who := reach(t, c, 10); len(who) != 2 {
				t.Error(who)
			}
		}
		st := c.Status()
		if st.Trouble == nil || st.Trouble.Error() != "etcd is gone" || !st.Updated.Equal(updated) || st.Snapshot || st.Target != "fed://arith" {
			t.Errorf("%+v", st)
		}
		f.list("a:1")
		if st := c.Status(); st.Trouble != nil || !st.Updated.Equal(time.Now()) {
			t.Errorf("%+v", st)
		}
	})
}

// A registry whose lists shrink again and again has a line in the log each minute.
func TestListShrinksAgainAndAgain(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		all := []string{"a:1", "b:1", "c:1", "d:1"}
		for _, a := range all {
			serve(t, network.Listen(a), hello(a))
		}
		f, log := newFeed(), new(testlog.Buffer)
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Logger(log.Logger()))
		shrink := func() {
			f.list(all...)
			reach(t, c, 24)
			f.list()
		}
		for range 3 {
			shrink()
		}
		if n := strings.Count(log.String(), "shrank"); n != 1 {
			t.Errorf("%d lines are logged for three lists in a minute, want 1:\n%s", n, log)
		}
		time.Sleep(time.Minute)
		shrink()
		if text := log.String(); strings.Count(text, "shrank") != 2 || !strings.Contains(text, " times=3") {
			t.Errorf("a minute later there should be a second line, for three lists:\n%s", text)
		}
	})
}

// Instances of an empty list, or of one that shrank by more than half, are kept: an instance goes
// when its own connection fails too.
func TestListShrinksAtOnce(t *testing.T) {
	for name, rest := range map[string][]string{"empty": nil, "one of four": {"a:1"}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				listeners := map[string]*ansertest.Listener{}
				all := []string{"a:1", "b:1", "c:1", "d:1"}
				for _, a := range all {
					listeners[a] = network.Listen(a)
					serve(t, listeners[a], hello(a))
				}
				f, log := newFeed(), new(testlog.Buffer)
				c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()), anser.Logger(log.Logger()))
				f.list(all...)
				reach(t, c, 24)
				f.list(rest...)
				f.list(rest...) // repeating the list changes nothing
				if who := reach(t, c, 24); len(who) != 4 {
					t.Errorf("reached %v, want all four", who)
				}
				held := 0
				for _, in := range c.Status().Instances {
					if in.Held {
						held++
					}
				}
				if text := log.String(); strings.Count(text, "shrank") != 1 || !strings.Contains(text, fmt.Sprint(" held=", held)) {
					t.Errorf("%d are held, and the log is\n%s", held, text)
				}
				if want := len(all) - len(rest); held != want {
					t.Errorf("%d instances are held, want %d", held, want)
				}
				listeners["d:1"].Kill()
				time.Sleep(time.Second)
				if who := reach(t, c, 24); len(who) != 3 || who["d:1"] != 0 {
					t.Errorf("reached %v, want the three that are left", who)
				}
				if n := len(c.Status().Instances); n != 3 {
					t.Errorf("%d instances, want 3", n)
				}
				f.list(all[:3]...)
				for _, in := range c.Status().Instances {
					if in.Held {
						t.Errorf("%s is held although it is listed", in.Address)
					}
				}
			})
		})
	}
}

// Half of the instances, or fewer, go when the list says so.
func TestListShrinks(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var servers []*anser.Server
		all := []string{"a:1", "b:1", "c:1", "d:1"}
		for _, a := range all {
			servers = append(servers, serve(t, network.Listen(a), hello(a)))
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
		f.list(all...)
		reach(t, c, 24)
		f.list(all[:2]...)
		if who := reach(t, c, 24); len(who) != 2 {
			t.Errorf("reached %v, want two", who)
		}
		time.Sleep(time.Second)
		if conns(servers[2]) != 0 || conns(servers[3]) != 0 {
			t.Error("connections to instances that are gone")
		}
		f.list(all...)
		if who := reach(t, c, 24); len(who) != 4 {
			t.Errorf("reached %v, want all four again", who)
		}
	})
}

// An instance that takes no calls gets none, however large a part of the list such instances are.
func TestInstanceState(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1"} {
			serve(t, network.Listen(a), hello(a))
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
		for _, state := range []registry.State{registry.Draining, registry.Disabled} {
			f.list("a:1", "b:1")
			f.instances(registry.Instance{Service: "arith", Address: "a:1", State: state}, registry.Instance{Service: "arith", Address: "b:1"})
			if who := reach(t, c, 6); who["a:1"] != 0 {
				t.Errorf("%s: %v", state, who)
			}
		}
		f.instances(registry.Instance{Service: "arith", Address: "no port"}, registry.Instance{Service: "arith", Address: "b:1"})
		if who := reach(t, c, 6); who["b:1"] != 6 {
			t.Error(who)
		}
	})
}

// Calls in flight to an instance that is removed from the list, or moves, complete.
func TestDeregisteredInstanceFinishesItsCalls(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		slow := map[string]handler{"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			select {
			case <-release:
				return in, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		s := serve(t, network.Listen("a:1"), slow)
		serve(t, network.Listen("b:1"), slow)
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
		f.instances(registry.Instance{Service: "arith", ID: "one", Address: "a:1"})
		var calls []*anser.Future[[]byte]
		for range 10 {
			calls = append(calls, anser.Go[[]byte](context.Background(), c, "Echo.Wait", text("hello"), anser.Timeout(0)))
		}
		synctest.Wait()
		f.instances(registry.Instance{Service: "arith", ID: "one", Address: "b:1"})
		time.Sleep(time.Minute)
		if n := s.Stats().Methods["Echo.Wait"].Calls; n != 10 || conns(s) == 0 {
			t.Fatalf("%d calls, %d connections", n, conns(s))
		}
		close(release)
		for _, f := range calls {
			if out, err := f.Wait(); err != nil || string(*out) != "hello" {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		if n := conns(s); n != 0 {
			t.Errorf("%d connections to the address that was left", n)
		}
	})
}

// Servers come and go in an in-memory registry, and calls find them.
func TestMemoryRegistry(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		m := registry.NewMemory()
		defer m.Close()
		c := dial(t, "memory:///echo", m.Scheme("memory"), anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Who", text(""))
		synctest.Wait()
		first := anser.NewServer(silent, anser.Announce(m, registry.Instance{Service: "echo"}))
		anser.Handle(first, "Echo.Who", hello("a:1")["Echo.Who"])
		run(t, first, network.Listen("a:1"))
		if out, err := reply.Wait(); err != nil || string(*out) != "a:1" {
			t.Fatal("a call that began before the first instance was there:", err)
		}
		second := anser.NewServer(silent, anser.Announce(m, registry.Instance{Service: "echo"}))
		anser.Handle(second, "Echo.Who", hello("b:1")["Echo.Who"])
		run(t, second, network.Listen("b:1"))
		synctest.Wait()
		// The first connection to b makes a new picker, which begins anywhere.
		if who := reach(t, c, 10); who["a:1"] < 4 || who["b:1"] < 4 {
			t.Error(who)
		}
		if err := first.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		if who := reach(t, c, 10); who["b:1"] != 10 {
			t.Error(who)
		}
	})
}

// A server that restarts at its old address is a second instance there until the record of the
// first one is gone. From then on the client still notices when that address is down.
func TestTwoInstancesAtOneAddress(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		l := network.Listen("a:1")
		serve(t, l, map[string]handler{"Echo.Say": echo})
		serve(t, network.Listen("b:1"), map[string]handler{"Echo.Say": echo})
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
		old := registry.Instance{Service: "arith", ID: "old", Address: "a:1"}
		again := registry.Instance{Service: "arith", ID: "again", Address: "a:1"}
		other := registry.Instance{Service: "arith", ID: "other", Address: "b:1"}
		f.instances(old, other)
		f.instances(old, again, other)
		f.instances(again, other)
		for range 10 {
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
		}
		l.Kill()
		time.Sleep(10 * time.Millisecond) // an idle connection is not read at every moment
		failed := 0
		for range 10 {
			if _, err := call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(anser.Failfast)); err != nil {
				failed++
			}
		}
		if failed != 0 {
			t.Errorf("%d calls went to an instance that is known to be down", failed)
		}
	})
}

// Without any instance a call is an error, never a success, and names the service.
func TestNoInstance(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial))
		_, err := call(context.Background(), c, "Echo.Say", "")
		if e := wantFault(t, err, anser.DeadlineExceeded, anser.NotSent); e.Phase != anser.PhaseResolve || !strings.Contains(e.Message, "no list of instances yet") {
			t.Error(err)
		}
		f.down(errors.New("etcd is gone"))
		_, err = call(context.Background(), c, "Echo.Say", "")
		if e := wantFault(t, err, anser.Unavailable, anser.NotSent); e.Message != "the registry cannot be reached, and there is no snapshot of its last list: etcd is gone" {
			t.Error(err)
		}
		f.list()
		_, err = call(context.Background(), c, "Echo.Say", "")
		if e := wantFault(t, err, anser.Unavailable, anser.NotSent); e.Phase != anser.PhasePick || e.Message != `no instance of "arith" is known: is one registered and running?` {
			t.Error(err)
		}
		began := time.Now()
		_, err = call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(anser.Failfast))
		wantFault(t, err, anser.Unavailable, anser.NotSent)
		if time.Since(began) != 0 {
			t.Error("failfast waited")
		}
	})
}

// A call that the caller cancels fails with Canceled, whatever else is wrong.
func TestCancelDuringAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial))
		f.down(errors.New("etcd is gone"))
		ctx, cancel := context.WithCancel(context.Background())
		reply := anser.Go[[]byte](ctx, c, "Echo.Say", text(""))
		synctest.Wait()
		cancel()
		_, err := reply.Wait()
		if e := wantFault(t, err, anser.Canceled, anser.NotSent); !errors.Is(err, context.Canceled) || !strings.Contains(e.Message, "etcd is gone") {
			t.Error(err)
		}
	})
}

// A watch that ends with a permanent error is retried all the same, slowly.
func TestWatchThatFails(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), hello("a:1"))
		var tries atomic.Int32
		r := watchFunc(func(ctx context.Context, update func([]registry.Instance)) error {
			if tries.Add(1) < 4 {
				return errors.New("no permission")
			}
			update([]registry.Instance{{Service: "arith", Address: "a:1"}})
			<-ctx.Done()
			return ctx.Err()
		})
		c := dial(t, "bad://x", anser.Dialer(network.Dial), registry.Scheme{Name: "bad", Open: func(*url.URL) (registry.Resolver, string, error) { return r, "arith", nil }})
		synctest.Wait()
		if st := c.Status(); st.Trouble == nil || st.Trouble.Error() != "no permission" {
			t.Error(st.Trouble)
		}
		began := time.Now()
		reach(t, c, 1)
		if d := time.Since(began); d < 2*time.Second || d > 4*time.Second {
			t.Errorf("the fourth try came after %v", d)
		}
	})
}

// watchFunc is a resolver.
type watchFunc func(ctx context.Context, update func([]registry.Instance)) error

func (f watchFunc) Watch(ctx context.Context, _ string, update func([]registry.Instance), _ func(error)) error {
	return f(ctx, update)
}

// A registry that loses its instances one after the other, as when their keys are deleted in turn,
// removes no more than half of them within ten seconds.
func TestListShrinksStepByStep(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		all := []string{"a:1", "b:1", "c:1", "d:1", "e:1", "f:1"}
		for _, a := range all {
			serve(t, network.Listen(a), hello(a))
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
		f.list(all...)
		reach(t, c, 60)
		for i := range all {
			f.list(all[i+1:]...)
			time.Sleep(time.Second)
		}
		if who := reach(t, c, 60); len(who) != 3 {
			t.Errorf("reached %v, want the three that went last", who)
		}
		f.list(all...)
		for i := range 3 { // slowly enough to be removed
			f.list(all[i+1:]...)
			time.Sleep(20 * time.Second)
		}
		if n := len(c.Status().Instances); n != 3 {
			t.Errorf("%d instances: want 3", n)
		}
		f.list("e:1", "f:1")
		time.Sleep(20 * time.Second)
		f.list("f:1")
		if who := reach(t, c, 20); len(who) != 1 {
			t.Errorf("reached %v, want one", who)
		}
	})
}
