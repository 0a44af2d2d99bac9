package anser_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
)

// deadKinds are the ways in which a dead instance responds to a dial.
var deadKinds = map[string]func(ctx context.Context, n *ansertest.Network, address string) (net.Conn, error){
	"silent": func(context.Context, *ansertest.Network, string) (net.Conn, error) {
		client, _ := net.Pipe()
		return client, nil
	},
	"black-holed": func(ctx context.Context, _ *ansertest.Network, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	},
	"refusing": func(context.Context, *ansertest.Network, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	},
}

// dialed counts how often each address was dialed.
type dialed struct {
	mu sync.Mutex
	by map[string]int
}

func (d *dialed) note(address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = make(map[string]int)
	}
	d.by[address]++
}

func (d *dialed) addresses() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.by)
}

// A client that starts while one instance is alive finds it within a second, however many are dead,
// and with any balancer.
func TestStartBesideDeadInstances(t *testing.T) {
	for kind, dead := range deadKinds {
		for _, n := range []int{2, 10, 100, 1000} {
			for _, callers := range []int{1, 32} {
				for _, b := range balancers(t) {
					if n > 10 && b.Name() != "p2c" && b.Name() != "consistent_hash" && b.Name() != "sticky" {
						continue
					}
					if n == 1000 && (b.Name() != "p2c" || callers > 1 && testing.Short()) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%d/%d/%s", kind, n, callers, b.Name()), func(t *testing.T) {
						bubble(t, func(t *testing.T, network *ansertest.Network) { startBeside(t, network, dead, n, callers, b) })
					})
				}
			}
		}
	}
}

func startBeside(t *testing.T, network *ansertest.Network, dead func(context.Context, *ansertest.Network, string) (net.Conn, error), n, callers int, b balance.Balancer) {
	serve(t, network.Listen("alive:1"), map[string]handler{"Echo.Say": echo})
	addresses := []string{"alive:1"}
	for i := range n - 1 {
		addresses = append(addresses, fmt.Sprintf("dead%d:1", i))
	}
	c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Balancer(b), anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
		if address == "alive:1" {
			return network.Dial(ctx, kind, address)
		}
		return dead(ctx, network, address)
	}))
	var slowest atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range 5 {
				began := time.Now()
				if _, err := call(context.Background(), c, "Echo.Say", fmt.Sprint(i), anser.HashKey(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
				slowest.Store(max(slowest.Load(), int64(time.Since(began))))
			}
		})
	}
	wg.Wait()
	if d := time.Duration(slowest.Load()); d > time.Second {
		t.Errorf("a call took %v", d)
	}
	f := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"))
	if _, err := f.Wait(); err != nil {
		t.Error(err)
	}
}

// Futures, one-way messages and streams find a live instance among dead ones as calls do.
func TestEveryWayStartsBesideDeadInstances(t *testing.T) {
	for kind, dead := range deadKinds {
		for name, way := range ways {
			t.Run(kind+"/"+name, func(t *testing.T) {
				bubble(t, func(t *testing.T, network *ansertest.Network) {
					s := anser.NewServer(silent)
					anser.Handle(s, "Echo.Say", echo)
					anser.HandleStream(s, "Echo.Stream", func(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
						in, err := st.Recv()
						if err != nil {
							return err
						}
						return st.Send(in)
					})
					run(t, s, network.Listen("alive:1"))
					addresses := []string{"alive:1"}
					for i := range 19 {
						addresses = append(addresses, fmt.Sprintf("dead%d:1", i))
					}
					c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
						if address == "alive:1" {
							return network.Dial(ctx, kind, address)
						}
						return dead(ctx, network, address)
					}))
					for range 5 {
						ctx, cancel := context.WithTimeout(context.Background(), time.Second)
						if err := way(ctx, c); err != nil {
							t.Error(err)
						}
						cancel()
					}
				})
			})
		}
	}
}

// Where all instances are healthy, only the picked ones are dialed.
func TestNoHuntAmongHealthyInstances(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var addresses []string
		for i := range 50 {
			addresses = append(addresses, fmt.Sprintf("a%d:1", i))
			serve(t, network.Listen(addresses[i]), map[string]handler{"Echo.Say": echo})
		}
		var seen dialed
		c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Conns(1), anser.Balancer(balance.RoundRobin()),
			anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
				seen.note(address)
				time.Sleep(90 * time.Millisecond) // a distant server
				return network.Dial(ctx, kind, address)
			}))
		for i := range 10 {
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
			if n := seen.addresses(); n != i+1 {
				t.Fatalf("%d instances were dialed for %d calls", n, i+1)
			}
		}
	})
}

// A key goes to its own instance if that connects in time, and to another one if it does not.
func TestKeyGoesElsewhereWhileItsInstanceIsLate(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var addresses []string
		for i := range 4 {
			addresses = append(addresses, fmt.Sprintf("a%d:1", i))
			serve(t, network.Listen(addresses[i]), map[string]handler{"Who.Am": func(context.Context, *[]byte) (*[]byte, error) { return text(addresses[i]), nil }})
		}
		var late atomic.Pointer[string]
		target := "tcp://" + strings.Join(addresses, ",")
		dialer := anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			if own := late.Load(); own != nil && *own == address {
				time.Sleep(2 * time.Second)
			}
			return network.Dial(ctx, kind, address)
		})
		who := func(c *anser.Client) string {
			out, err := call(context.Background(), c, "Who.Am", "", anser.HashKey("the key"))
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		own := who(dial(t, target, dialer, anser.Balancer(balance.ConsistentHash())))
		late.Store(&own)
		c := dial(t, target, dialer, anser.Balancer(balance.ConsistentHash()))
		began := time.Now()
		if other := who(c); other == own || time.Since(began) > 300*time.Millisecond {
			t.Errorf("the call went to %s after %v; the instance of the key, %s, is late", other, time.Since(began), own)
		}
		time.Sleep(3 * time.Second)
		if got := who(c); got != own {
			t.Errorf("the call went to %s, and %s can be reached now", got, own)
		}
	})
}

// Closing a client during a hunt leaks nothing.
func TestCloseEndsHunts(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var addresses []string
		for i := range 100 {
			addresses = append(addresses, fmt.Sprintf("dead%d:1", i))
		}
		c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Dialer(func(ctx context.Context, _, address string) (net.Conn, error) {
			return deadKinds["black-holed"](ctx, nil, address)
		}))
		f := anser.Go[[]byte](context.Background(), c, "Echo.Say", text(""))
		r := apart(context.Background(), c, "Echo.Say", text(""))
		time.Sleep(400 * time.Millisecond)
		c.Close()
		_, err := f.Wait()
		wantFault(t, err, anser.Canceled, anser.NotSent)
		_, err = r.Wait()
		wantFault(t, err, anser.Canceled, anser.NotSent)
	})
}

// An error that will not change while a call waits ends the call at once, or after two seconds
// where a server may be about to start, and names the cause.
func TestFinalErrorsEndCalls(t *testing.T) {
	refuses := func(context.Context, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	for name, test := range map[string]struct {
		dial   func(ctx context.Context, address string) (net.Conn, error)
		within time.Duration
		text   string
	}{
		"refused": {refuses, 3200 * time.Millisecond, "refused"},
		"unknown name": {func(context.Context, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}
		}, 3200 * time.Millisecond, "no such host"},
		"certificate": {func(context.Context, string) (net.Conn, error) {
			return nil, fmt.Errorf("handshake: %w", x509.UnknownAuthorityError{})
		}, time.Millisecond, "unknown authority"},
		"another protocol": {func(context.Context, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				go server.Read(make([]byte, 1000))
				server.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				server.Close()
			}()
			return client, nil
		}, time.Millisecond, "not the Anser protocol"},
	} {
		for _, n := range []int{1, 3, 20} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				bubble(t, func(t *testing.T, _ *ansertest.Network) {
					var addresses []string
					for i := range n {
						addresses = append(addresses, fmt.Sprintf("a%d:1", i))
					}
					c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Dialer(func(ctx context.Context, _, address string) (net.Conn, error) {
						return test.dial(ctx, address)
					}))
					for range 3 {
						for _, way := range []string{"Call", "Go", "Send", "Open"} {
							began := time.Now()
							err := ways[way](context.Background(), c)
							e := wantFault(t, err, anser.Unavailable, anser.NotSent)
							if d := time.Since(began); d > test.within || !strings.Contains(e.Error(), test.text) {
								t.Errorf("%s: after %v: %v", way, d, e)
							}
						}
					}
					time.Sleep(time.Minute) // a client retries later, once per call, whatever its backoff
					began := time.Now()
					_, err := call(context.Background(), c, "Echo.Say", "")
					wantFault(t, err, anser.Unavailable, anser.NotSent)
					if d := time.Since(began); d > test.within+time.Second {
						t.Errorf("after a minute: %v", d)
					}
				})
			})
		}
	}
}

// An instance that was connected before is waited for as long as the call may take: it is most
// likely restarting.
func TestRestartIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Say", echo)
		l := network.Listen("a:1")
		run(t, s, l)
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
			t.Fatal(err)
		}
		s.Close()
		r := apart(context.Background(), c, "Echo.Say", text("hello"))
		time.Sleep(8 * time.Second)
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// ConnectTimeout bounds the handshake with a server that says nothing, and a credential source that
// does not answer.
func TestConnectTimeoutBoundsTheHandshake(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		defer network.Listen("a:1").Close()
		for name, opts := range map[string][]anser.DialOption{
			"plain": {anser.ConnectTimeout(time.Second)},
			"slow dial": {anser.ConnectTimeout(time.Second), anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
				time.Sleep(600 * time.Millisecond)
				return network.Dial(ctx, kind, address)
			})},
			"short handshake": {anser.HandshakeTimeout(time.Second)},
			"credentials": {anser.ConnectTimeout(time.Second), anser.InsecureCredentials(), anser.Credentials(func(ctx context.Context) (anser.Credential, error) {
				<-ctx.Done()
				return anser.Credential{}, ctx.Err()
			})},
		} {
			c := dial(t, "a:1", append([]anser.DialOption{anser.Dialer(network.Dial)}, opts...)...)
			began := time.Now()
			_, err := call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(anser.Failfast))
			wantFault(t, err, anser.Unavailable, anser.NotSent)
			if d := time.Since(began); d != time.Second {
				t.Errorf("%s: the call failed after %v, want a second", name, d)
			}
		}
	})
}

// The error of a call that timed out says why no instance was reached.
func TestDeadlineErrorsTellTheCause(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c := dial(t, "tcp://a:1,b:1,c:1", anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			if address == "a:1" {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return deadKinds["black-holed"](ctx, network, address)
		}))
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_, err := call(ctx, c, "Echo.Say", "")
		e := wantFault(t, err, anser.DeadlineExceeded, anser.NotSent)
		for _, part := range []string{"none of 3 instances", "2 do not answer", "a:1", "refused"} {
			if !strings.Contains(e.Error(), part) {
				t.Errorf("%q does not say %q", e, part)
			}
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// A call whose time ends when its instance becomes late, both after 250 ms, has timed out.
func TestDeadlineAtTheMomentOfLateness(t *testing.T) {
	for way, try := range ways {
		t.Run(way, func(t *testing.T) {
			for range 50 { // either timer may be the first
				bubble(t, func(t *testing.T, network *ansertest.Network) {
					c := dial(t, "tcp://a:1,b:1", anser.Timeout(250*time.Millisecond), anser.Dialer(func(ctx context.Context, _, address string) (net.Conn, error) {
						return deadKinds["black-holed"](ctx, network, address)
					}))
					began := time.Now()
					err := try(context.Background(), c)
					wantFault(t, err, anser.DeadlineExceeded, anser.NotSent)
					if d := time.Since(began); d != 250*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("after %v: %v", d, err)
					}
				})
			}
		})
	}
}

// Calls that waited for the same connections get separate errors.
func TestCallsOfOneHuntHaveErrorsOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T, _ *ansertest.Network) {
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(50 * time.Millisecond)
			return nil, fmt.Errorf("handshake: %w", x509.UnknownAuthorityError{})
		}))
		methods := []string{"Echo.Say", "Echo.Stream", "Echo.Other"}
		faults := make([]error, len(methods))
		var wg sync.WaitGroup
		for i, method := range methods {
			wg.Go(func() { _, faults[i] = call(context.Background(), c, method, "") })
		}
		wg.Wait()
		for i, method := range methods {
			fault, ok := errors.AsType[*anser.Error](faults[i])
			if !ok || fault.Method != method {
				t.Errorf("the error of %s is %v", method, faults[i])
			}
		}
	})
}
