package anser_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// Many clients whose server restarts do not come at once when it is back, and each makes one
// connection then. While it is away they try a few times a second at most. Their calls wait and
// succeed.
func TestClientsReturnApart(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		const clients, away, window = 200, 2 * time.Second, 50 * time.Millisecond
		var mu sync.Mutex
		var dials []time.Time // of all clients
		dialer := func(ctx context.Context, kind, address string) (net.Conn, error) {
			mu.Lock()
			dials = append(dials, time.Now())
			mu.Unlock()
			return network.Dial(ctx, kind, address)
		}
		start := func() *anser.Server {
			s := anser.NewServer(silent)
			anser.Handle(s, "Echo.Say", echo)
			run(t, s, network.Listen("a:1"))
			return s
		}
		first := start()
		all := make([]*anser.Client, clients)
		for i := range all {
			all[i] = dial(t, "a:1", anser.Dialer(dialer), anser.Conns(1))
			if _, err := call(context.Background(), all[i], "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		first.Close()
		lost := time.Now()
		mu.Lock()
		dials = nil
		mu.Unlock()
		var wg sync.WaitGroup
		for _, c := range all {
			wg.Go(func() {
				if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(away)
		start()
		wg.Wait()
		took := time.Since(lost)
		mu.Lock()
		defer mu.Unlock()
		perWindow := make(map[time.Duration]int)
		back := 0
		for _, at := range dials {
			if d := at.Sub(lost); d >= away {
				back++
				perWindow[d.Truncate(window)]++
			}
		}
		t.Logf("%d dials of %d clients while the server was away, %d later; all calls ended %v after its return", len(dials)-back, clients, back, took-away)
		if n := len(dials) - back; n > 8*clients {
			t.Errorf("%d dials of %d clients within %v", n, clients, away)
		}
		if back > clients {
			t.Errorf("%d dials of %d clients after the server had returned", back, clients)
		}
		for d, n := range perWindow {
			if n > clients/4 {
				t.Errorf("%d of %d clients dialled within %v, %v after the return of the server", n, clients, window, d-away)
			}
		}
		if took > away+5*time.Second/2 {
			t.Errorf("the last call ended %v after the return of the server", took-away)
		}
	})
}
