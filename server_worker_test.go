package anser_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
)

// waitArgs is a small message of a codec that decodes with reflection or generated code.
type waitArgs struct {
	ID              []byte
	Account, Amount int64
}

// A handler that waits keeps a small stack, whatever its request was decoded with, and little else.
func TestMemoryOfWaitingHandlers(t *testing.T) {
	const calls = 4000
	const wait anser.Method[waitArgs, waitArgs] = "Echo.Wait"
	var running atomic.Int32
	l := listen(t)
	s := anser.NewServer(silent)
	err := wait.Handle(s, func(ctx context.Context, in *waitArgs) (*waitArgs, error) {
		if len(in.ID) != 16 || in.Amount != 7 {
			return nil, errors.New("not the request")
		}
		running.Add(1)
		defer running.Add(-1)
		<-ctx.Done()
		return nil, ctx.Err()
	}, anser.Concurrent())
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, l)
	c := dial(t, l.Addr().String())
	hold := func(n int) (release func()) {
		ctx, cancel := context.WithCancel(t.Context())
		in := &waitArgs{ID: make([]byte, 16), Amount: 7}
		futures := make([]*anser.Future[waitArgs], n)
		for i := range futures {
			futures[i] = wait.Go(ctx, c, in)
		}
		eventually(t, "all handlers run", func() bool { return running.Load() == int32(n) })
		return func() {
			cancel()
			for _, f := range futures {
				if _, err := f.Wait(); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
			eventually(t, "all handlers have returned", func() bool { return running.Load() == 0 })
		}
	}
	hold(100)() // what the first calls need, such as connections
	heapBefore, stacksBefore := heap(), stacks()
	release := hold(calls)
	heapEach, stackEach := float64(heap()-heapBefore)/calls, float64(stacks()-stacksBefore)/calls
	release()
	most := 3.0 * 1024 // with 2 KiB each, and more where the allocator needed it
	if raced {
		most = 8.5 * 1024
	}
	t.Logf("%.0f bytes of stack, %.0f of the heap on both sides", stackEach, heapEach)
	if stackEach > most {
		t.Errorf("%.0f bytes of stack for each call, want at most %.0f", stackEach, most)
	}
	if heapEach > 3<<10 {
		t.Errorf("%.0f bytes of the heap for each call, on both sides", heapEach)
	}
}

// moody is a message whose decoder does what the message says.
type moody struct{ what string }

var (
	moods   atomic.Int32          // that were decoded
	blocked = make(chan struct{}) // a decoder receives from it
)

func (s *moody) MarshalBinary() ([]byte, error) {
	if s.what == "leave" {
		runtime.Goexit()
	}
	return []byte(s.what), nil
}

func (s *moody) UnmarshalBinary(b []byte) error {
	moods.Add(1)
	switch s.what = string(b); s.what {
	case "fail":
		return errors.New("no")
	case "panic":
		panic("no")
	case "exit":
		runtime.Goexit()
	case "block":
		<-blocked
	}
	return nil
}

// serveMoody serves moody messages to a client with one connection. many keeps calls in flight
// until release is called.
func serveMoody(t *testing.T, opts ...anser.ServerOption) (s *anser.Server, c *anser.Client, many func() (release func())) {
	const (
		say  anser.Method[moody, moody]   = "Echo.Moody"
		wait anser.Method[[]byte, []byte] = "Echo.Wait"
	)
	l := listen(t)
	s = anser.NewServer(append(opts, silent)...)
	say.Handle(s, func(_ context.Context, in *moody) (*moody, error) {
		switch in.what {
		case "mute":
			return &moody{"leave"}, nil
		case "block":
			return &moody{"free"}, nil
		}
		return in, nil
	}, anser.Concurrent())
	wait.Handle(s, func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, anser.Concurrent())
	run(t, s, l)
	c = dial(t, l.Addr().String(), anser.Conns(1))
	return s, c, func() (release func()) {
		ctx, cancel := context.WithCancel(t.Context())
		futures := make([]*anser.Future[[]byte], 300)
		for i := range futures {
			futures[i] = wait.Go(ctx, c, new([]byte))
		}
		eventually(t, "they are in flight", func() bool { return s.Stats().InFlight >= int64(len(futures)) })
		return func() {
			cancel()
			for _, f := range futures {
				f.Wait()
			}
		}
	}
}

// With many calls in flight, requests are decoded elsewhere, with the same results.
func TestEarlyDecoding(t *testing.T) {
	const say anser.Method[moody, moody] = "Echo.Moody"
	_, c, many := serveMoody(t)
	id := regexp.MustCompile("id [A-Z0-9]+")
	results := func() (list []string) {
		for _, what := range []string{"hello", "fail", "panic", "exit", "after"} {
			out, err := say.Call(t.Context(), c, &moody{what})
			if err != nil {
				list = append(list, id.ReplaceAllString(err.Error(), "id")+", "+anser.OutcomeOf(err).String())
			} else {
				list = append(list, out.what)
			}
		}
		return list
	}
	want := results()
	release := many()
	got := results()
	release()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q with many calls in flight, want %q", got[i], want[i])
		}
	}
	if want[0] != "hello" || want[4] != "after" {
		t.Errorf("results: %q", want)
	}
}

// An observer refuses requests before they are decoded, also with many calls in flight.
func TestRefusedBeforeEarlyDecoding(t *testing.T) {
	const say anser.Method[moody, moody] = "Echo.Moody"
	_, c, many := serveMoody(t, anser.Observe(anser.Observer{Request: func(_ context.Context, m anser.MessageInfo) error {
		if m.Method == string(say) {
			return errors.New("not today")
		}
		return nil
	}}))
	defer many()()
	before := moods.Load()
	if _, err := say.Call(t.Context(), c, &moody{"hello"}); anser.CodeOf(err) != anser.PermissionDenied {
		t.Errorf("the observer refuses, and the result is %v", err)
	}
	if n := moods.Load() - before; n != 0 {
		t.Errorf("%d requests were decoded before the observer had refused them", n)
	}
}

// Observers learn of a call the same way, wherever its request is decoded. One whose decoder or
// encoder ends the goroutine has failed.
func TestObservedEarlyDecoding(t *testing.T) {
	const say anser.Method[moody, moody] = "Echo.Moody"
	for name, observer := range map[string]func(n *notes) anser.Observer{
		"followed": func(n *notes) anser.Observer {
			return anser.Observer{
				CallBegan: func(ctx context.Context, c *anser.CallInfo) context.Context {
					if c.Method == string(say) {
						n.add(fmt.Sprintf("began, %d bytes", c.RequestBytes))
					}
					return ctx
				},
				CallEnded: func(_ context.Context, c *anser.CallInfo) {
					if c.Method == string(say) {
						n.add(fmt.Sprintf("ended, %d and %d bytes: %s", c.RequestBytes, c.ReplyBytes, resultOf(c.Err)))
					}
				},
			}
		},
		"measured": func(n *notes) anser.Observer {
			return anser.Observer{
				Measure: func(k anser.CallKind) func(context.Context, anser.Measurement) bool {
					if k.Method != string(say) {
						return nil
					}
					return func(_ context.Context, m anser.Measurement) bool {
						n.add(fmt.Sprintf("measured, %d and %d bytes: %s", m.RequestBytes, m.ReplyBytes, resultOf(m.Err)))
						return true
					}
				},
				CallEnded: func(_ context.Context, c *anser.CallInfo) {
					if c.Method == string(say) {
						n.add(fmt.Sprintf("ended, %d and %d bytes: %s", c.RequestBytes, c.ReplyBytes, resultOf(c.Err)))
					}
				},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := new(notes)
			_, c, many := serveMoody(t, anser.Observe(observer(seen)))
			call := func(what string) []string {
				say.Call(t.Context(), c, &moody{what})
				return seen.take() // they learn of the end before the caller
			}
			want := make(map[string][]string)
			for _, what := range []string{"hello", "fail", "panic", "exit", "mute"} {
				want[what] = call(what)
			}
			defer many()()
			for what, few := range want {
				if got := call(what); !slices.Equal(got, few) {
					t.Errorf("%s, with many calls in flight: %q; with few: %q", what, got, few)
				}
			}
			for _, what := range []string{"exit", "mute"} {
				if n := len(want[what]); n > 0 && want[what][n-1] != "ended, 4 and 0 bytes: internal, executed" {
					t.Errorf("%s: %q", what, want[what])
				}
			}
		})
	}
}

// A decoder that blocks does not hold up its connection, with few calls in flight or with many.
func TestDecoderBlocks(t *testing.T) {
	const say anser.Method[moody, moody] = "Echo.Moody"
	_, c, many := serveMoody(t)
	for _, hold := range []func() func(){func() func() { return func() {} }, many} {
		release := hold()
		before := moods.Load()
		stuck := say.Go(t.Context(), c, &moody{"block"})
		eventually(t, "the decoder blocks", func() bool { return moods.Load() > before })
		for range 3 {
			if out, err := say.Call(t.Context(), c, &moody{"hello"}, anser.Timeout(patience)); err != nil || out.what != "hello" {
				t.Error(err)
			}
		}
		blocked <- struct{}{}
		if out, err := stuck.Wait(); err != nil || out.what != "free" {
			t.Errorf("the call whose decoder blocked: %v", err)
		}
		release()
	}
}
