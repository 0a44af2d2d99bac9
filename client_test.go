package anser_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// A call that was made inside a bubble and one outside share nothing that belongs to the bubble.
func TestCallsInAndOutOfBubbles(t *testing.T) {
	round := func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		for range 50 {
			if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
				t.Fatal(out, err)
			}
		}
	}
	for range 3 {
		t.Run("in", func(t *testing.T) { bubble(t, round) })
		t.Run("out", func(t *testing.T) { round(t, new(ansertest.Network)) })
	}
}

func TestCallAfterClose(t *testing.T) {
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Say": echo})
	closed, other := dial(t, l.Addr().String()), dial(t, l.Addr().String())
	for _, c := range []*anser.Client{closed, other} { // they share their connections
		if _, err := call(context.Background(), c, "Echo.Say", "hello"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := call(context.Background(), closed, "Echo.Say", "hello")
	if e := wantFault(t, err, anser.Canceled, anser.NotSent); e.Message != "the client is closed" {
		t.Fatal(e.Message)
	}
	if _, err := call(context.Background(), other, "Echo.Say", "hello"); err != nil {
		t.Fatal(err)
	}
}

func TestCloseEndsACallThatWaitsForInstances(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c := dial(t, "fed://arith", newFeed().scheme(), anser.Dialer(network.Dial))
		began := time.Now()
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"), anser.Timeout(0))
		synctest.Wait()
		c.Close()
		_, err := reply.Wait()
		wantFault(t, err, anser.Canceled, anser.NotSent)
		if d := time.Since(began); d != 0 {
			t.Errorf("the call ended %v after Close", d)
		}
	})
}

func TestCloseEndsACallThatWaitsForItsNextAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c := dial(t, "nobody:1", anser.Dialer(network.Dial))
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"))
		synctest.Wait()
		c.Close()
		_, err := reply.Wait()
		wantFault(t, err, anser.Canceled, anser.NotSent)
	})
}

// A call whose context has ended before it begins is not sent.
func TestContextThatHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		if _, err := call(context.Background(), c, "Echo.Say", "connect"); err != nil {
			t.Fatal(err)
		}
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		expired, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		for ctx, code := range map[context.Context]anser.Code{cancelled: anser.Canceled, expired: anser.DeadlineExceeded} {
			for range 20 {
				_, err := call(ctx, c, "Echo.Say", "hello")
				wantFault(t, err, code, anser.NotSent)
				if !errors.Is(err, ctx.Err()) {
					t.Fatalf("%v is not %v", err, ctx.Err())
				}
			}
		}
		synctest.Wait()
		if n := s.Stats().Methods["Echo.Say"].Calls; n != 1 {
			t.Errorf("%d calls ran, want 1", n)
		}
	})
}

// The time that goes by before a connection stands is not the handler's to use.
func TestTimeoutShrinksWhileConnecting(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		left := make(chan time.Duration, 1)
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				deadline, _ := ctx.Deadline()
				left <- time.Until(deadline)
				return in, nil
			},
		})
		slow := anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			time.Sleep(3 * time.Second)
			return network.Dial(ctx, kind, address)
		})
		for _, withContext := range []bool{false, true} {
			c := dial(t, "a:1", slow, anser.Conns(1))
			ctx := context.Background()
			if withContext {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
			}
			if _, err := call(ctx, c, "Echo.Say", "hello"); err != nil {
				t.Fatal(err)
			}
			if d := <-left; d != 7*time.Second {
				t.Errorf("the handler has %v left, the caller 7 s", d)
			}
		}
	})
}
