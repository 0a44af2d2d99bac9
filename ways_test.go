package anser_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
)

// ways are the ways to call a method, by the name of the function.
var ways = map[string]func(ctx context.Context, c *anser.Client) error{
	"Call": func(ctx context.Context, c *anser.Client) error {
		_, err := call(ctx, c, "Echo.Say", "hello")
		return err
	},
	"Go": func(ctx context.Context, c *anser.Client) error {
		_, err := anser.Go[[]byte](ctx, c, "Echo.Say", text("hello")).Wait()
		return err
	},
	"Send": func(ctx context.Context, c *anser.Client) error {
		return anser.Send(ctx, c, "Echo.Say", text("hello"))
	},
	"Open": func(ctx context.Context, c *anser.Client) error {
		s, err := anser.Open[[]byte, []byte](ctx, c, "Echo.Stream")
		if err != nil {
			return err
		}
		if err := s.Send(text("hello")); err != nil {
			return err
		}
		_, err = s.Recv()
		s.Close()
		return err
	},
	"Bind": func(ctx context.Context, c *anser.Client) error {
		var say func(context.Context, *[]byte) (*[]byte, error)
		if err := anser.Bind(c, "Echo.Say", &say); err != nil {
			return err
		}
		_, err := say(ctx, text("hello"))
		return err
	},
	"Backup": func(ctx context.Context, c *anser.Client) error {
		_, err := call(ctx, c, "Echo.Say", "hello", anser.Idempotent(), anser.WithFailMode(anser.Backup))
		return err
	},
	"Fork": func(ctx context.Context, c *anser.Client) error {
		_, err := call(ctx, c, "Echo.Say", "hello", anser.Idempotent(), anser.WithFailMode(anser.Fork))
		return err
	},
}

// balancers returns all balancers by name.
func balancers(t testing.TB) (list []balance.Balancer) {
	t.Helper()
	for _, name := range balance.Names() {
		b, err := balance.ByName(name, balance.Here{Hosts: []string{"a1"}, Latitude: 50, Longitude: 8})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}

// inTime runs f in a bubble, and fails when that takes minutes of real time: in a bubble a
// goroutine that never blocks keeps time from passing.
func inTime(t *testing.T, f func(t *testing.T, network *ansertest.Network)) {
	t.Helper()
	watchdog := time.AfterFunc(5*time.Minute, func() { panic(t.Name() + ": something has worked for minutes and does not stop") })
	defer watchdog.Stop()
	bubble(t, f)
}

// Every way to call ends in time with every balancer and any number of instances, on a client
// with or without connections, and leaves no work behind.
func TestEveryWayToCallEnds(t *testing.T) {
	for _, b := range balancers(t) {
		t.Run(b.Name(), func(t *testing.T) {
			for n := 1; n <= 8; n++ {
				inTime(t, func(t *testing.T, network *ansertest.Network) {
					var addresses []string
					for i := range n {
						address := fmt.Sprintf("a%d:1", i)
						s := anser.NewServer(silent)
						anser.Handle(s, "Echo.Say", echo)
						anser.HandleStream(s, "Echo.Stream", func(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
							in, err := st.Recv()
							if err != nil {
								return err
							}
							return st.Send(in)
						})
						run(t, s, network.Listen(address))
						addresses = append(addresses, address)
					}
					for name, way := range ways {
						c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Dialer(network.Dial), anser.Balancer(b))
						for i := range 2 * n { // the first one is cold, and each goes to another instance with some
							ctx, cancel := context.WithTimeout(context.Background(), time.Second)
							if err := way(ctx, c); err != nil {
								t.Errorf("%s number %d of %d instances: %v", name, i, n, err)
							}
							cancel()
						}
						c.Close()
					}
				})
			}
		})
	}
}

// The same where no instance answers: every way gives up at its deadline.
func TestEveryWayToCallGivesUp(t *testing.T) {
	for _, b := range balancers(t) {
		t.Run(b.Name(), func(t *testing.T) {
			for _, n := range []int{1, 2, 5} {
				for _, kind := range []string{"silent", "refusing"} {
					inTime(t, func(t *testing.T, network *ansertest.Network) {
						var addresses []string
						for i := range n {
							addresses = append(addresses, fmt.Sprintf("a%d:1", i))
							if kind == "silent" {
								defer network.Listen(addresses[i]).Close()
							}
						}
						for name, way := range ways {
							c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Dialer(network.Dial), anser.Balancer(b))
							ctx, cancel := context.WithTimeout(context.Background(), time.Second)
							began := time.Now()
							if err := way(ctx, c); err == nil {
								t.Errorf("%s with %d %s instances: no error", name, n, kind)
							}
							if d := time.Since(began); d > 1010*time.Millisecond {
								t.Errorf("%s with %d %s instances: an error after %v", name, n, kind, d)
							}
							cancel()
							synctest.Wait()
							c.Close()
						}
					})
				}
			}
		})
	}
}

// A future that waits for the connection of the picked instance goes to that instance, without
// another pick.
func TestFuturePicksOnce(t *testing.T) {
	inTime(t, func(t *testing.T, network *ansertest.Network) {
		picks := &counting{Balancer: balance.RoundRobin()}
		var addresses []string
		for i := range 4 {
			addresses = append(addresses, fmt.Sprintf("a%d:1", i))
			serve(t, network.Listen(addresses[i]), map[string]handler{"Echo.Say": echo})
		}
		c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Dialer(network.Dial), anser.Balancer(picks))
		for range 8 {
			if _, err := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello")).Wait(); err != nil {
				t.Fatal(err)
			}
		}
		if n := picks.n.Load(); n != 8 {
			t.Errorf("%d picks for 8 calls", n)
		}
	})
}

func TestSessionsCallOverAnyConnection(t *testing.T) {
	inTime(t, func(t *testing.T, network *ansertest.Network) {
		for n := 1; n <= 8; n++ {
			var servers []*anser.Server
			var addresses []string
			for i := range n {
				addresses = append(addresses, fmt.Sprintf("s%d-%d:1", n, i))
				s := anser.NewServer(silent)
				run(t, s, network.Listen(addresses[i]))
				servers = append(servers, s)
			}
			own := anser.NewServer(silent)
			anser.Handle(own, "Echo.Say", echo)
			c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Dialer(network.Dial), anser.Handlers(own))
			synctest.Wait()
			for _, s := range servers {
				for _, sess := range s.Sessions() {
					for _, name := range []string{"Call", "Go", "Send", "Bind"} {
						ctx, cancel := context.WithTimeout(context.Background(), time.Second)
						if err := ways[name](ctx, sess.Client()); err != nil {
							t.Errorf("%s with %d servers: %v", name, n, err)
						}
						cancel()
					}
				}
				if len(s.Sessions()) != 1 {
					t.Errorf("%d sessions", len(s.Sessions()))
				}
			}
			c.Close()
			own.Close()
		}
	})
}

// counting counts the picks of its pickers.
type counting struct {
	balance.Balancer
	n atomic.Int64
}

func (c *counting) Build(endpoints []*balance.Endpoint) balance.Picker {
	return &countingPicker{c.Balancer.Build(endpoints), c}
}

type countingPicker struct {
	balance.Picker
	of *counting
}

func (p *countingPicker) Pick(r *balance.Request) *balance.Endpoint {
	p.of.n.Add(1)
	return p.Picker.Pick(r)
}
