package anser_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// chance performs a random operation on a stream, on either side.
func chance(r *rand.Rand, st *bytesStream, ctx context.Context) error {
	for {
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			msg := make([]byte, sizes[r.IntN(len(sizes))])
			if err := st.Send(&msg); err != nil {
				return err
			}
		case 4, 5, 6, 7:
			if _, err := st.Recv(); err != nil {
				return err
			}
		case 8:
			time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
		case 9:
			// Both directions at once.
			var wg sync.WaitGroup
			wg.Go(func() {
				msg := make([]byte, 5000)
				for range 20 {
					if st.Send(&msg) != nil {
						return
					}
				}
			})
			for range 10 {
				if _, err := st.Recv(); err != nil {
					break
				}
			}
			if r.IntN(2) == 0 {
				wg.Wait()
			} else {
				defer wg.Wait() // the handler may return in the middle of a message
			}
		case 10:
			return nil
		case 11:
			if r.IntN(2) == 0 {
				return anser.Errorf(anser.Aborted, "enough")
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

var sizes = []int{0, 1, 100, 1000, 5000, 20_000, 70_000}

// However streams end, and in whichever order: each of them ends, none leaks anything, and all
// credit of their connections is returned.
func TestStreamsAtRandom(t *testing.T) {
	for _, over := range []string{"tcp", "memory"} {
		t.Run(over, func(t *testing.T) {
			ansertest.CheckLeaks(t)
			const window = 64 << 10
			seed := uint64(time.Now().UnixNano())
			t.Log("seed", seed)
			network := &ansertest.Network{Buffer: 8 << 10}
			l, opts := listen(t), []anser.DialOption{anser.Conns(1), anser.FlowControlWindows(24<<10, window)}
			address := l.Addr().String()
			if over == "memory" {
				l.Close()
				address, opts = "a:1", append(opts, anser.Dialer(network.Dial))
				l = network.Listen(address)
			}
			s := serveStreams(t, l, map[string]streamHandler{
				"Chat.Chance": func(ctx context.Context, st *bytesStream) error {
					return ended(chance(rand.New(rand.NewPCG(seed, rand.Uint64())), st, ctx))
				},
				"Chat.Talk": talk,
			}, anser.FlowControlWindows(32<<10, window))
			c := dial(t, address, opts...)
			keeper := open(t, context.Background(), c, "Chat.Talk") // keeps the same connection in use
			const workers, each = 8, 40
			var wg sync.WaitGroup
			for worker := range workers {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(worker)))
					for range each {
						if err := oneAtRandom(r, c); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			eventually(t, "the other streams have ended", func() bool { st := s.Stats(); return st.Streams == 1 && st.InFlight == 1 })
			eventually(t, "all credit of the connection is accounted for", func() bool { return s.Unread() == 0 && c.Unread() == 0 })
			// The full window, several times over, both ways.
			msg := make([]byte, 10_000)
			var sent sync.WaitGroup
			sent.Go(func() {
				for range 5 * window / len(msg) {
					if err := keeper.Send(&msg); err != nil {
						t.Error(err)
					}
				}
				keeper.CloseSend()
			})
			n := 0
			for m, err := range keeper.All() {
				if err != nil {
					t.Fatal(err)
				}
				if len(*m) != len(msg) {
					t.Errorf("a message of %d bytes", len(*m))
				}
				n++
			}
			if sent.Wait(); n != 5*window/len(msg) {
				t.Errorf("%d messages came back", n)
			}
			if st := s.Stats(); st.Conns != 1 || st.Panics != 0 || len(st.Closed) != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// oneAtRandom opens a stream, uses it and ends it in one of many ways.
func oneAtRandom(r *rand.Rand, c *anser.Client) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.IntN(4) == 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(r.IntN(3000))*time.Microsecond)
		defer stop()
	}
	first := make([]byte, sizes[r.IntN(len(sizes))])
	st, err := anser.OpenWith[[]byte, []byte](ctx, c, "Chat.Chance", &first)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("open: %w", err)
	}
	// Both sides may be waiting for each other: the timer ends that.
	defer time.AfterFunc(time.Duration(5+r.IntN(20))*time.Millisecond, cancel).Stop()
	chance(r, st, ctx)
	switch r.IntN(4) {
	case 0:
		st.Close()
	case 1:
		cancel()
	case 2:
		st.CloseSend()
	}
	for {
		_, err := st.Recv()
		switch anser.CodeOf(err) {
		case anser.OK:
			continue
		case anser.Canceled, anser.DeadlineExceeded, anser.Aborted,
			anser.Internal: // in the middle of a message
			return nil
		}
		if err == io.EOF {
			return nil
		}
		return fmt.Errorf("receive: %w", err)
	}
}
