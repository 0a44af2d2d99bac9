package anser_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/compress/zstd"
	"github.com/anser-rpc/anser/registry"
)

// serveNames starts n servers that reply with their names, over TCP, and returns the target to
// dial.
func serveNames(t *testing.T, n int) string {
	var addresses []string
	for i := range n {
		l := listen(t)
		s := anser.NewServer(silent)
		name := text(fmt.Sprint("server ", i))
		anser.Handle(s, "Echo.Who", func(context.Context, *[]byte) (*[]byte, error) { return name, nil })
		anser.HandleStream(s, "Echo.Talk", func(_ context.Context, st *anser.Stream[[]byte, []byte]) error { return st.Send(name) })
		run(t, s, l)
		addresses = append(addresses, l.Addr().String())
	}
	return "tcp://" + strings.Join(addresses, ",")
}

// servedBy returns the name of the server that answers one call.
func servedBy(t *testing.T, ctx context.Context, c *anser.Client, in string, opts ...anser.CallOption) string {
	t.Helper()
	out, err := call(ctx, c, "Echo.Who", in, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wantKeyed fails the test unless calls with the same key go to one server and calls with many keys
// go to several. answer gets the key and a number that differs in every call.
func wantKeyed(t *testing.T, what string, answer func(key string, other int) string) {
	t.Helper()
	servers := map[string]bool{}
	for k := range 40 {
		key := fmt.Sprint("user-", k)
		first := answer(key, 0)
		servers[first] = true
		for other := range 4 {
			if got := answer(key, 1+other); got != first {
				t.Fatalf("%s: calls with one key went to %s and %s", what, first, got)
			}
		}
	}
	if len(servers) < 3 {
		t.Errorf("%s: 40 keys went to %d of 5 servers", what, len(servers))
	}
}

func TestKeysOfCalls(t *testing.T) {
	target := serveNames(t, 5)
	ctx := context.Background()
	for _, b := range []balance.Balancer{balance.ConsistentHash(), balance.Maglev()} {
		c := dial(t, target, anser.Balancer(b))
		wantKeyed(t, "HashKey", func(key string, other int) string {
			return servedBy(t, ctx, c, fmt.Sprint("request ", other), anser.HashKey(key))
		})
		// The request is encoded anew each time, from a value at another address.
		wantKeyed(t, "the encoded request", func(key string, _ int) string { return servedBy(t, ctx, c, key) })
		wantKeyed(t, "a future", func(key string, other int) string {
			out, err := anser.Go[[]byte](ctx, c, "Echo.Who", text(fmt.Sprint(other)), anser.HashKey(key)).Wait()
			if err != nil {
				t.Fatal(err)
			}
			return string(*out)
		})

		// A compressed request is the same request.
		wantKeyed(t, "a compressed request", func(key string, other int) string {
			in := strings.Repeat(key, 1000)
			if other%2 == 0 {
				return servedBy(t, ctx, c, in)
			}
			return servedBy(t, ctx, c, in, anser.Compress(zstd.New(), anser.CompressFrom(0)))
		})
		wantKeyed(t, "an oneway message", func(key string, other int) string {
			if err := anser.Send(ctx, c, "Echo.Who", text(fmt.Sprint(other)), anser.HashKey(key)); err != nil {
				t.Fatal(err)
			}
			return servedBy(t, ctx, c, fmt.Sprint(other), anser.HashKey(key))
		})

		talk := func(ctx context.Context, c *anser.Client, first *[]byte, opts ...anser.CallOption) string {
			st, err := anser.OpenWith[[]byte, []byte](ctx, c, "Echo.Talk", first, opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			name, err := st.Recv()
			if err != nil {
				t.Fatal(err)
			}
			return string(*name)
		}
		wantKeyed(t, "a stream", func(key string, other int) string {
			return talk(ctx, c, text(fmt.Sprint(other)), anser.HashKey(key))
		})
		wantKeyed(t, "a stream without a message", func(key string, _ int) string {
			return talk(ctx, c, nil, anser.HashKey(key))
		})
		wantKeyed(t, "the first message of a stream", func(key string, _ int) string { return talk(ctx, c, text(key)) })
		met := map[string]bool{}
		for range 60 {
			met[talk(ctx, c, nil)] = true
		}
		if len(met) < 3 {
			t.Errorf("60 streams about nothing met %d of 5 servers", len(met))
		}

		by := dial(t, target, anser.Balancer(b), anser.HashBy(func(_ context.Context, method string, request any) string {
			user, _, _ := strings.Cut(string(*request.(*[]byte)), " ")
			return method + user
		}))
		wantKeyed(t, "HashBy", func(key string, other int) string { return servedBy(t, ctx, by, fmt.Sprint(key, " ", other)) })
		wantKeyed(t, "HashKey beside HashBy", func(key string, other int) string {
			return servedBy(t, ctx, by, fmt.Sprint(other), anser.HashKey(key))
		})
		wantKeyed(t, "an empty key", func(key string, _ int) string {
			return servedBy(t, ctx, by, key, anser.HashKey(""), anser.HashBy(func(context.Context, string, any) string { return "" }))
		})

		md := dial(t, target, anser.Balancer(b), anser.HashMetadata("User"))
		wantKeyed(t, "HashMetadata", func(key string, other int) string {
			return servedBy(t, anser.WithMetadata(ctx, anser.Metadata{"user": key}), md, fmt.Sprint(other))
		})
		wantKeyed(t, "HashMetadata of a stream", func(key string, other int) string {
			return talk(anser.WithMetadata(ctx, anser.Metadata{"user": key}), md, text(fmt.Sprint(other)))
		})
	}
}

// The key of a call does not remain in buffers that the next call uses.
func TestKeysDoNotOutliveTheirCall(t *testing.T) {
	c := dial(t, serveNames(t, 5), anser.Balancer(balance.Maglev()))
	ctx := context.Background()
	want := servedBy(t, ctx, c, "one request")
	for k := range 40 {
		servedBy(t, ctx, c, "another", anser.HashKey(fmt.Sprint("user-", k)))
		if got := servedBy(t, ctx, c, "one request"); got != want {
			t.Fatalf("a call without a key went to %s: want %s, as without the calls before", got, want)
		}
	}
}

// Metadata that is propagated from the call that a handler serves can be a key of the handler's
// calls.
func TestKeyFlowsOn(t *testing.T) {
	back := dial(t, serveNames(t, 5), anser.Balancer(balance.Maglev()), anser.HashMetadata("flow-user"))
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Who": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		return anser.Call[[]byte](ctx, back, "Echo.Who", in)
	}})
	front := dial(t, l.Addr().String())
	wantKeyed(t, "metadata that flows on", func(key string, other int) string {
		ctx := anser.WithMetadata(context.Background(), anser.Metadata{"flow-user": key})
		return servedBy(t, ctx, front, fmt.Sprint(other))
	})
}

func TestHashByThatPanics(t *testing.T) {
	c := dial(t, serveNames(t, 2), anser.Balancer(balance.Maglev()), anser.HashBy(func(_ context.Context, _ string, request any) string {
		return request.(*Args).String()
	}))
	_, err := call(context.Background(), c, "Echo.Who", "")
	e := wantFault(t, err, anser.Internal, anser.NotSent)
	if !strings.Contains(e.Message, "anser.HashBy panicked on *[]uint8") {
		t.Error(e.Message)
	}
	if _, err := anser.Call[[]byte](context.Background(), c, "Echo.Who", text(""), anser.HashKey("user-1")); err != nil {
		t.Error(err)
	}
	_, err = anser.OpenWith[[]byte, []byte](context.Background(), c, "Echo.Talk", text(""))
	wantFault(t, err, anser.Internal, anser.NotSent)
}

// String makes the function of TestHashByThatPanics compile.
func (a *Args) String() string { return fmt.Sprint(a.A, a.B) }

func TestStickyClient(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1", "c:1"} {
			serve(t, network.Listen(a), hello(a))
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.Sticky()))
		f.list("b:1")
		wantOnly := func(want string) {
			t.Helper()
			if got := reach(t, c, 20); got[want] != 20 {
				t.Fatalf("calls went to %v: want all at %s", got, want)
			}
		}
		wantOnly("b:1")
		f.list("a:1", "b:1", "c:1")
		wantOnly("b:1") // the balancer was asked for the list of one too
		f.instances(registry.Instance{Service: "arith", Address: "a:1"}, registry.Instance{Service: "arith", Address: "b:1", State: registry.Disabled})
		wantOnly("a:1")
		f.list("a:1", "b:1", "c:1")
		wantOnly("a:1") // and does not move when the first instance is back
	})
}

// builds counts how often a picker is built.
type builds struct {
	balance.Balancer
	n atomic.Int64
}

func (b *builds) Build(list []*balance.Endpoint) balance.Picker {
	b.n.Add(1)
	return b.Balancer.Build(list)
}

// A picker is built when the list or an instance in it changes, not when a connection is made.
func TestPickersAreBuiltWhenTheListChanges(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1", "c:1"} {
			serve(t, network.Listen(a), hello(a))
		}
		f := newFeed()
		b := &builds{Balancer: balance.RoundRobin()}
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(b))
		wantBuilds := func(want int64, after string) {
			t.Helper()
			if got := b.n.Load(); got != want {
				t.Errorf("%d pickers were built after %s: want %d", got, after, want)
			}
		}
		f.list("a:1", "b:1", "c:1")
		if got := reach(t, c, 30); len(got) != 3 || got["a:1"] != 10 {
			t.Error(got)
		}
		wantBuilds(1, "three connections were made")
		f.list("a:1", "b:1", "c:1")
		wantBuilds(1, "the same list")
		heavy := registry.Instance{Service: "arith", Address: "a:1", Weight: 7}
		f.instances(heavy, registry.Instance{Service: "arith", Address: "b:1"}, registry.Instance{Service: "arith", Address: "c:1"})
		wantBuilds(2, "a change of a weight")
		f.instances(heavy, registry.Instance{Service: "arith", Address: "b:1"})
		wantBuilds(3, "an instance left")
	})
}

func TestClosestClientSpillsOver(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		hold := make(chan struct{})
		for _, a := range []string{"munich:1", "vienna:1", "sydney:1"} {
			serve(t, network.Listen(a), map[string]handler{
				"Echo.Who":  hello(a)["Echo.Who"],
				"Echo.Hold": func(context.Context, *[]byte) (*[]byte, error) { <-hold; return text(a), nil },
			})
		}
		f := newFeed()
		here := balance.Here{Latitude: 48.14, Longitude: 11.58, Full: 2}
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.Closest(here)))
		f.instances(
			registry.Instance{Service: "arith", Address: "munich:1", Latitude: 48.1, Longitude: 11.6},
			registry.Instance{Service: "arith", Address: "sydney:1", Latitude: -33.9, Longitude: 151.2},
			registry.Instance{Service: "arith", Address: "vienna:1", Latitude: 48.2, Longitude: 16.4},
		)
		if got := reach(t, c, 10); got["munich:1"] != 10 {
			t.Fatal(got)
		}
		var held []*anser.Future[[]byte]
		for _, want := range []string{"munich:1", "munich:1", "vienna:1", "vienna:1", "sydney:1"} {
			if got := reach(t, c, 5); got[want] != 5 {
				t.Errorf("with %d calls in flight calls go to %v: want %s", len(held), got, want)
			}
			held = append(held, anser.Go[[]byte](context.Background(), c, "Echo.Hold", text("")))
			synctest.Wait()
		}
		close(hold)
		for _, h := range held {
			if _, err := h.Wait(); err != nil {
				t.Error(err)
			}
		}
		if got := reach(t, c, 10); got["munich:1"] != 10 {
			t.Error(got)
		}
	})
}

// portion returns the fraction of calls that go to an instance.
func portion(t *testing.T, c *anser.Client, instance string) float64 {
	t.Helper()
	const n = 1000
	return float64(reach(t, c, n)[instance]) / n
}

// A new instance, and one that came back, begins with a tenth of its weight and grows to all of it.
func TestSlowStart(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		listeners := map[string]*ansertest.Listener{}
		servers := map[string]*anser.Server{}
		for _, a := range []string{"a:1", "b:1", "c:1"} {
			listeners[a] = network.Listen(a)
			servers[a] = serve(t, listeners[a], hello(a))
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial),
			anser.Balancer(balance.Weighted()), anser.SlowStart(20*time.Second))
		wantPortion := func(instance string, least, most float64) {
			t.Helper()
			if got := portion(t, c, instance); got < least || got > most {
				t.Errorf("%s gets %.3f of the calls: want %.3f to %.3f", instance, got, least, most)
			}
		}
		f.list("a:1", "b:1")
		wantPortion("b:1", .49, .51) // instances of the first list have their full weight

		f.list("a:1", "b:1", "c:1")
		wantPortion("c:1", .04, .06) // a tenth of a share: 10/210
		time.Sleep(10 * time.Second)
		wantPortion("c:1", .19, .23) // 55/255
		time.Sleep(11 * time.Second)
		wantPortion("c:1", .32, .345)
		wantPortion("b:1", .32, .345)

		servers["b:1"].Close()
		wantPortion("b:1", 0, 0)
		time.Sleep(time.Minute)
		serve(t, network.Listen("b:1"), hello("b:1"))
		for reach(t, c, 20)["b:1"] == 0 {
			time.Sleep(time.Second) // until the client has reconnected
		}
		wantPortion("b:1", .04, .09)
		time.Sleep(25 * time.Second)
		wantPortion("b:1", .32, .345)
	})
}

// Without the option an instance has its full weight from the start.
func TestNoSlowStart(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1"} {
			serve(t, network.Listen(a), hello(a))
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.Weighted()))
		f.list("a:1")
		reach(t, c, 1)
		f.list("a:1", "b:1")
		if got := portion(t, c, "b:1"); got < .49 || got > .51 {
			t.Errorf("the new instance gets %.3f of the calls: want half", got)
		}
	})
}

// A client that is closed during a slow start leaks nothing: the bubble would not end.
func TestCloseDuringSlowStart(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), hello("a:1"))
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			return network.Dial(ctx, kind, "a:1")
		}), anser.SlowStart(time.Hour))
		f.list("a:1")
		f.list("a:1", "b:1")
		reach(t, c, 1)
		c.Close()
		time.Sleep(2 * time.Hour)
	})
}
