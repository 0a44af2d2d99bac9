package anser_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
)

// observer returns an observer that records everything.
func (n *notes) observer(side string) anser.Observer {
	conn := func(c anser.ConnInfo) string {
		return fmt.Sprintf("%s %q %t", side, c.Address, c.Server)
	}
	message := func(m anser.MessageInfo) string {
		return fmt.Sprintf("%s %s at %q, attempt %d, codec %d, %d bytes, %t", side, m.Method, m.Address, m.Attempt, m.Codec, m.Bytes, m.Server)
	}
	return anser.Observer{
		ConnOpened: func(c anser.ConnInfo) error {
			if c.Peer.Addr == nil || c.Peer.Local == nil {
				return errors.New("without addresses")
			}
			n.add("opened " + conn(c))
			return nil
		},
		ConnClosed: func(c anser.ConnInfo, err error) { n.add(fmt.Sprintf("closed %s: %v", conn(c), err)) },
		ConnFailed: func(c anser.ConnInfo, err error) { n.add(fmt.Sprintf("failed %s: %v", conn(c), err)) },
		Request: func(_ context.Context, m anser.MessageInfo) error {
			n.add("request " + message(m))
			return nil
		},
		Reply: func(_ context.Context, m anser.MessageInfo) {
			n.add(fmt.Sprintf("reply %s: %v", message(m), anser.CodeOf(m.Err)))
		},
		MethodAdded: func(name string) error { n.add("added " + name); return nil },
		Announced:   func(in registry.Instance, err error) { n.add(fmt.Sprintf("announced %s: %v", in.Service, err)) },
		Withdrawn:   func(in registry.Instance, err error) { n.add(fmt.Sprintf("withdrawn %s: %v", in.Service, err)) },
	}
}

func expectNotes(t *testing.T, n *notes, want ...string) {
	t.Helper()
	got := strings.Join(n.take(), "\n")
	if w := strings.Join(want, "\n"); got != w {
		t.Errorf("noted\n%s\nwant\n%s", got, w)
	}
}

func TestObserver(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		atServer, atClient := new(notes), new(notes)
		s := anser.NewServer(silent, anser.Observe(atServer.observer("s")),
			anser.Announce(registry.NewMemory(), registry.Instance{Service: "echo"}))
		anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) {
			if len(*in) == 0 {
				return nil, anser.Errorf(anser.NotFound, "nothing said")
			}
			return text(string(*in) + "!"), nil
		}, anser.Alias("Echo.Old"))
		anser.Handle(s, "Echo.Panic", func(context.Context, *[]byte) (*[]byte, error) { panic("on purpose") })
		expectNotes(t, atServer, "added Echo.Say", "added Echo.Panic")
		l := network.Listen("a:1")
		run(t, s, l)
		synctest.Wait()
		expectNotes(t, atServer, "announced echo: <nil>")

		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Observe(atClient.observer("c")))
		for _, in := range []string{"hello", ""} {
			call(context.Background(), c, "Echo.Old", in)
		}
		anser.Go[[]byte](context.Background(), c, "Echo.Panic", text("x")).Wait()
		expectNotes(t, atServer,
			`opened s "" true`,
			`request s Echo.Say at "", attempt 0, codec 1, 5 bytes, true`,
			`reply s Echo.Say at "", attempt 0, codec 1, 6 bytes, true: ok`,
			`request s Echo.Say at "", attempt 0, codec 1, 0 bytes, true`,
			`reply s Echo.Say at "", attempt 0, codec 1, 0 bytes, true: not found`,
			`request s Echo.Panic at "", attempt 0, codec 1, 1 bytes, true`,
			`reply s Echo.Panic at "", attempt 0, codec 1, 0 bytes, true: internal`)
		expectNotes(t, atClient,
			`opened c "a:1" false`,
			`request c Echo.Old at "a:1", attempt 0, codec 1, 5 bytes, false`,
			`reply c Echo.Old at "a:1", attempt 0, codec 1, 6 bytes, false: ok`,
			`request c Echo.Old at "a:1", attempt 0, codec 1, 0 bytes, false`,
			`reply c Echo.Old at "a:1", attempt 0, codec 1, 0 bytes, false: not found`,
			`request c Echo.Panic at "a:1", attempt 0, codec 1, 1 bytes, false`,
			`reply c Echo.Panic at "a:1", attempt 0, codec 1, 0 bytes, false: internal`)

		if err := anser.Send(context.Background(), c, "Echo.Say", text("once")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expectNotes(t, atServer, `request s Echo.Say at "", attempt 0, codec 1, 4 bytes, true`)
		expectNotes(t, atClient, `request c Echo.Say at "a:1", attempt 0, codec 1, 4 bytes, false`)

		s.Close()
		c.Close()
		synctest.Wait()
		expectNotes(t, atServer, "withdrawn echo: <nil>", `closed s "" true: <nil>`)
		expectNotes(t, atClient, `closed c "a:1" false: <nil>`)
	})
}

// An attempt that an observer refuses is not sent, and a call that the server's observer refuses
// does not run.
func TestObserverRefusesRequests(t *testing.T) {
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			network := new(ansertest.Network)
			refuse := anser.Observe(anser.Observer{Request: func(_ context.Context, m anser.MessageInfo) error {
				switch m.Bytes {
				case 1:
					return errors.New("no letters")
				case 2:
					return anser.Errorf(anser.FailedPrecondition, "no words")
				}
				return nil
			}})
			n := new(notes)
			methods := map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				n.add(string(*in))
				return in, nil
			}}
			outcome := anser.NotSent
			opts := []anser.DialOption{anser.Dialer(network.Dial)}
			if side == "server" {
				outcome = anser.Refused
				serve(t, network.Listen("a:1"), methods, refuse)
			} else {
				opts = append(opts, refuse)
				serve(t, network.Listen("a:1"), methods)
			}
			c := dial(t, "a:1", opts...)
			_, err := call(context.Background(), c, "Echo.Say", "a", anser.WithFailMode(anser.Failfast))
			if e := wantFault(t, err, anser.PermissionDenied, outcome); e.Message != "no letters" {
				t.Error(e)
			}
			_, err = call(context.Background(), c, "Echo.Say", "ab")
			wantFault(t, err, anser.FailedPrecondition, outcome)
			_, err = anser.Go[[]byte](context.Background(), c, "Echo.Say", text("a")).Wait()
			wantFault(t, err, anser.PermissionDenied, outcome)
			err = anser.Send(context.Background(), c, "Echo.Say", text("a"))
			if side == "client" {
				wantFault(t, err, anser.PermissionDenied, outcome)
			} else if err != nil {
				t.Error(err)
			}
			if out, err := call(context.Background(), c, "Echo.Say", "abc"); out != "abc" || err != nil {
				t.Error(out, err)
			}
			expectNotes(t, n, "abc")
			if a := c.Status().Instances[0].Active; a != 0 {
				t.Errorf("%d attempts are still counted", a)
			}
		})
	}
}

// A connection that an observer refuses gets no calls; the next one may.
func TestObserverRefusesConnections(t *testing.T) {
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				n, tried := new(notes), 0
				refuse := anser.Observer{ConnOpened: func(anser.ConnInfo) error {
					if tried++; tried == 1 {
						return errors.New("not today")
					}
					return nil
				}}
				note := n.observer(side)
				note.Request, note.Reply, note.MethodAdded = nil, nil, nil
				observe := anser.Observe(note, refuse)
				opts := []anser.DialOption{anser.Dialer(network.Dial), anser.Conns(1)}
				if side == "server" {
					serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, observe)
				} else {
					opts = append(opts, observe)
					serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
				}
				c := dial(t, "a:1", opts...)
				_, err := call(context.Background(), c, "Echo.Say", "a", anser.WithFailMode(anser.Failfast))
				if e := wantFault(t, err, anser.Unavailable, anser.NotSent); !strings.Contains(e.Message, "not today") {
					t.Error(e)
				}
				if out, err := call(context.Background(), c, "Echo.Say", "a"); out != "a" || err != nil {
					t.Error(out, err)
				}
				list := n.take()
				if len(list) != 3 || !strings.HasPrefix(list[0], "opened") || !strings.HasPrefix(list[1], "failed") ||
					!strings.Contains(list[1], "not today") || !strings.HasPrefix(list[2], "opened") {
					t.Error(list)
				}
			})
		})
	}
}

// Request is called for each attempt, with its number and its instance.
func TestObserverOfAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		unavailable := map[string]handler{"Echo.Say": func(context.Context, *[]byte) (*[]byte, error) {
			return nil, anser.Errorf(anser.Unavailable, "not now")
		}}
		serve(t, network.Listen("a:1"), unavailable)
		serve(t, network.Listen("b:1"), unavailable)
		n := new(notes)
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial), anser.Observe(n.observer("c")))
		_, err := call(context.Background(), c, "Echo.Say", "a", anser.Idempotent(), anser.RetryOn(anser.Unavailable), anser.Attempts(2))
		fault(t, err)
		var seen []string
		for _, s := range n.take() {
			if strings.HasPrefix(s, "request") || strings.HasPrefix(s, "reply") {
				seen = append(seen, s)
			}
		}
		if len(seen) != 4 || !strings.Contains(seen[0], "attempt 0") || !strings.Contains(seen[2], "attempt 1") ||
			strings.Contains(seen[0], "a:1") == strings.Contains(seen[2], "a:1") {
			t.Error(seen)
		}
	})
}

// ConnFailed is called if no connection could be made.
func TestObserverOfDials(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		n := new(notes)
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Observe(n.observer("c")))
		_, err := call(context.Background(), c, "Echo.Say", "a", anser.WithFailMode(anser.Failfast))
		fault(t, err)
		synctest.Wait()
		if list := n.take(); len(list) != 1 || !strings.HasPrefix(list[0], `failed c "a:1" false: `) {
			t.Error(list)
		}
	})
}

// A server with a method that an observer refuses does not serve.
func TestObserverRefusesMethods(t *testing.T) {
	s := anser.NewServer(silent, anser.Observe(anser.Observer{MethodAdded: func(name string) error {
		return errors.New("it has no owner")
	}}))
	err := anser.Handle(s, "Echo.Say", echo)
	if err == nil || !strings.Contains(err.Error(), `method "Echo.Say" is refused: it has no owner`) {
		t.Error(err)
	}
	if err := s.Serve(new(ansertest.Network).Listen("a:1")); err == nil || !strings.Contains(err.Error(), "it has no owner") {
		t.Error(err)
	}
}

// Observers get a reply for each request, also if the handler ends its goroutine.
func TestObserverOfExits(t *testing.T) {
	network, seen := new(ansertest.Network), new(notes)
	s := anser.NewServer(silent, anser.Observe(anser.Observer{
		Request: func(_ context.Context, m anser.MessageInfo) error {
			seen.add("request of " + m.Method)
			return nil
		},
		Reply: func(_ context.Context, m anser.MessageInfo) {
			seen.add(fmt.Sprintf("reply of %s: %s", m.Method, resultOf(m.Err)))
		},
	}))
	leave := func(context.Context, *[]byte) (*[]byte, error) {
		runtime.Goexit()
		return nil, nil
	}
	anser.Handle(s, "Echo.Inline", leave, anser.Inline())
	anser.Handle(s, "Echo.Worker", leave, anser.Concurrent())
	anser.HandleStream(s, "Echo.Stream", func(context.Context, *bytesStream) error {
		runtime.Goexit()
		return nil
	})
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	for _, method := range []string{"Echo.Inline", "Echo.Worker"} {
		call(t.Context(), c, method, "x")
		expectNotes(t, seen, "request of "+method, "reply of "+method+": internal, executed")
	}
	open(t, t.Context(), c, "Echo.Stream").Recv()
	expectNotes(t, seen, "request of Echo.Stream", "reply of Echo.Stream: internal, executed")
}

// A server survives panics of observers.
func TestObserverPanics(t *testing.T) {
	network, when := new(ansertest.Network), "request"
	s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.Observe(anser.Observer{
		Request: func(context.Context, anser.MessageInfo) error {
			if when == "request" {
				panic("on purpose")
			}
			return nil
		},
		Reply: func(context.Context, anser.MessageInfo) {
			if when == "reply" {
				panic("on purpose")
			}
		},
	}))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	_, err := call(context.Background(), c, "Echo.Say", "a")
	wantFault(t, err, anser.Internal, anser.Refused)
	when = "reply"
	if out, err := call(context.Background(), c, "Echo.Say", "a"); out != "a" || err != nil {
		t.Error(out, err)
	}
	if n := s.Stats().Panics; n != 2 {
		t.Errorf("%d panics are counted, want 2", n)
	}
}
