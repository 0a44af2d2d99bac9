package anser_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// explained returns the explanation of one instance.
func explained(t *testing.T, c *anser.Client, method, key string) anser.ExplainedInstance {
	t.Helper()
	x, err := c.Explain(t.Context(), method)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range x.Instances {
		if in.Key == key {
			return in
		}
	}
	t.Fatalf("no instance %s in %+v", key, x.Instances)
	return anser.ExplainedInstance{}
}

// excluded checks the reason that excludes an instance, and its times.
func excluded(t *testing.T, in anser.ExplainedInstance, cause anser.Exclusion, words string, timed bool) {
	t.Helper()
	if in.Cause != cause || in.Excluded != words {
		t.Errorf("%s: %q, %q; want %q, %q", in.Key, in.Cause, in.Excluded, cause, words)
	}
	if !in.Until.IsZero() != timed || timed && !in.Until.After(time.Now()) {
		t.Errorf("%s is left out until %v, now it is %v", in.Key, in.Until, time.Now())
	}
}

// ejectA makes calls until the instance a:1, which declines them, is ejected.
func (w *ward) ejectA() {
	w.t.Helper()
	for i := 0; w.status("a:1").Ejected == ""; i++ {
		w.call(workMethod, 3)
		time.Sleep(100 * time.Millisecond)
		if i > 100 {
			w.t.Fatal("it is not ejected")
		}
	}
}

func TestExplainEjected(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 3)
		w.who["a:1"].gets(declining)
		w.ejectA()
		began := time.Now()
		time.Sleep(time.Second)
		in := explained(t, w.client, workMethod, "a:1")
		if in.Cause != anser.ExcludedEjected || !strings.HasPrefix(in.Excluded, "ejected 1") || !strings.Contains(in.Excluded, "as it refused 5 calls in a row: a call tries it in ") {
			t.Errorf("%q, %q", in.Cause, in.Excluded)
		}
		if d := began.Sub(in.Since); d < 0 || d > time.Second || in.Until.Sub(in.Since) != 2*time.Second {
			t.Errorf("ejected from %v to %v, seen at %v", in.Since, in.Until, began)
		}
		if b := explained(t, w.client, workMethod, "b:1"); b.Cause != "" || b.Excluded != "" || b.Note != "" || !b.Since.IsZero() {
			t.Errorf("%+v", b)
		}
		// Without calls it is not probed.
		time.Sleep(5 * time.Second)
		in = explained(t, w.client, workMethod, "a:1")
		excluded(t, in, anser.ExcludedEjected, in.Excluded, false)
		if !strings.HasSuffix(in.Excluded, "as it refused 5 calls in a row: single calls try it now") {
			t.Error(in.Excluded)
		}
		w.call(workMethod, 9)
		time.Sleep(time.Second)
		in = explained(t, w.client, workMethod, "a:1")
		excluded(t, in, anser.ExcludedEjected, in.Excluded, true)
		if !strings.HasPrefix(in.Excluded, "ejected (2 times in a row) ") {
			t.Error(in.Excluded)
		}
	})
}

func TestExplainSilent(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 3)
		w.who["a:1"].stall.Load().Stall()
		var waiting []*anser.Future[[]byte]
		for w.status("a:1").Ejected == "" {
			waiting = append(waiting, anser.Go[[]byte](context.Background(), w.client, workMethod, text(""), anser.Timeout(time.Minute)))
			time.Sleep(10 * time.Millisecond)
		}
		in := explained(t, w.client, workMethod, "a:1")
		excluded(t, in, anser.ExcludedEjected, "ejected 0s ago, as it does not answer pings: it is back when it does", false)
		w.who["a:1"].stall.Load().Resume()
		for _, f := range waiting {
			f.Wait()
		}
	})
}

func TestExplainBreaker(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 3)
		w.who["a:1"].gets(broken)
		w.call(workMethod, 3*200)
		time.Sleep(time.Second)
		in := explained(t, w.client, workMethod, "a:1")
		if in.Cause != anser.ExcludedBreaker || !strings.HasPrefix(in.Excluded, "the breaker of Ward.Work has been open for ") ||
			!strings.Contains(in.Excluded, ", as 200 of 200 calls failed: a call tries it in ") || in.Until.Sub(in.Since) != 2*time.Second {
			t.Errorf("%+v", in)
		}
		if in := explained(t, w.client, otherMethod, "a:1"); in.Cause != "" {
			t.Errorf("another method: %+v", in)
		}
		time.Sleep(2 * time.Second)
		in = explained(t, w.client, workMethod, "a:1")
		excluded(t, in, anser.ExcludedBreaker, in.Excluded, false)
		if !strings.HasPrefix(in.Excluded, "the breaker of Ward.Work has been half open for ") || !strings.HasSuffix(in.Excluded, ": single calls try it now") {
			t.Error(in.Excluded)
		}
		// If all are open, none keeps calls away.
		w.who["b:1"].gets(broken)
		w.who["c:1"].gets(broken)
		w.call(workMethod, 3*400)
		time.Sleep(time.Second)
		for _, key := range []string{"a:1", "b:1", "c:1"} {
			in := explained(t, w.client, workMethod, key)
			if in.Cause != "" || !strings.HasPrefix(in.Note, "the breaker of Ward.Work has been ") || !strings.HasSuffix(in.Note, "; it gets calls all the same, as no better one is left") {
				t.Errorf("%+v", in)
			}
		}
	})
}

// What p2c compares instances by is in the explanation: a slow instance is in use, and gets few
// calls.
func TestExplainSlow(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 3)
		w.who["a:1"].gets(func(string) error { time.Sleep(time.Second); return nil })
		w.call(workMethod, 3*20)
		var waiting []*anser.Future[[]byte]
		for range 3 {
			waiting = append(waiting, anser.Go[[]byte](context.Background(), w.client, workMethod, text("")))
		}
		time.Sleep(100 * time.Millisecond)
		if in := explained(t, w.client, workMethod, "a:1"); in.Latency < 100*time.Millisecond || in.Active != 1 || in.Cause != "" {
			t.Errorf("%+v", in)
		}
		if in := explained(t, w.client, workMethod, "b:1"); in.Latency >= 100*time.Millisecond || in.Active != 0 {
			t.Errorf("%+v", in)
		}
		for _, f := range waiting {
			f.Wait()
		}
	})
}

// A call goes to an ejected instance when all others are down, and to one that is down when all
// are.
func TestExplainTheLastOnes(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var down atomic.Value
		down.Store("")
		w := newWard(t, network, 2, anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			if strings.Contains(down.Load().(string), address) {
				return nil, errors.New("nobody is there")
			}
			return network.Dial(ctx, kind, address)
		}))
		cut := func(address string) {
			down.Store(down.Load().(string) + address)
			w.who[address].stall.Load().Cut()
			time.Sleep(100 * time.Millisecond)
			w.call(workMethod, 4)
			time.Sleep(100 * time.Millisecond)
		}
		w.who["a:1"].gets(declining)
		w.ejectA()
		cut("b:1")
		excluded(t, explained(t, w.client, workMethod, "b:1"), anser.ExcludedDown, "down: it could not be reached when last tried", false)
		if a := explained(t, w.client, workMethod, "a:1"); a.Cause != "" || !strings.HasPrefix(a.Note, "ejected ") {
			t.Errorf("%+v", a)
		}
		cut("a:1")
		for _, key := range []string{"a:1", "b:1"} {
			if in := explained(t, w.client, workMethod, key); in.Cause != "" || in.Note != "down: it could not be reached when last tried; it gets calls all the same, as no better one is left" {
				t.Errorf("%+v", in)
			}
		}
	})
}

func TestExplainSubsetAndStates(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		list := many(20)
		for _, in := range list {
			serve(t, network.Listen(in.Address), map[string]handler{"Echo.Say": echo})
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Balancer(balance.RoundRobin()), anser.Subset(10, 4), anser.Dialer(network.Dial))
		list[7].State = registry.Draining
		list[8].State = registry.Disabled
		list[9].Address = "nonsense"
		f.instances(list...)
		if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
			t.Fatal(err)
		}
		x, err := c.Explain(t.Context(), "Echo.Say")
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		for _, in := range x.Instances {
			got[fmt.Sprintf("%s: %s", in.Cause, in.Excluded)]++
		}
		for want, n := range map[string]int{
			": ": 4, "subset: not among the 4 of 17 that this client uses": 13,
			"state: it says that it is draining": 1, "state: it says that it is disabled": 1,
		} {
			if got[want] != n {
				t.Errorf("%d instances are %q: want %d of %v", got[want], want, n, got)
			}
		}
		if in := explained(t, c, "Echo.Say", "nonsense"); in.Cause != anser.ExcludedInvalid || !strings.Contains(in.Excluded, "nonsense") {
			t.Errorf("%+v", in)
		}
	})
}

// An explanation uses up no trial.
func TestExplainTriesNobody(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 3)
		a := w.who["a:1"]
		a.gets(declining)
		w.ejectA()
		a.gets(nil)
		time.Sleep(5 * time.Second) // from now on the next call probes it
		w.reset()
		for range 5 {
			if x, err := w.client.Explain(t.Context(), workMethod); err != nil || x.Pick == "a:1" || x.Pick == "" {
				t.Fatalf("%+v, %v: want another pick", x, err)
			}
		}
		if failed := w.call(workMethod, 1); failed != 0 || a.calls.Load() != 1 {
			t.Errorf("%d calls failed, %d went to the instance on trial", failed, a.calls.Load())
		}
	})
}
