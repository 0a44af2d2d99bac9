package e2e_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// crowd is what good calls were like while others came to a server in crowds.
type crowd struct {
	dials         int64         // in all
	rate          float64       // dials a second
	calls, failed int           // of good clients
	alone, beside time.Duration // the 99th percentile of good calls before and meanwhile
}

// Calls on connections that stand do not fail while thousands of others connect every second.
func TestManyDials(t *testing.T) {
	f := dialAlongside(t, 10_000, faultTime(2*time.Second, 60*time.Second))
	t.Logf("%d dials, %.0f a second; %d good calls, %d failed; their p99 was %v alone and %v beside the dials",
		f.dials, f.rate, f.calls, f.failed, f.alone.Round(time.Microsecond), f.beside.Round(time.Microsecond))
	if f.failed > 0 || f.calls == 0 || f.dials == 0 {
		t.Errorf("%+v", f)
	}
}

func dialAlongside(t *testing.T, rate int, lasts time.Duration) (f crowd) {
	t.Helper()
	server := start(t, "plain", config{Address: freeAddress()})
	good := apart(t, server.config.Address)
	measure := func() time.Duration {
		var took []time.Duration
		for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(time.Millisecond) {
			began := time.Now()
			f.calls++
			if err := echo(context.Background(), good, "Plain.Echo", 64); err != nil {
				t.Log(err)
				f.failed++
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	f.alone = measure()
	var stop atomic.Bool
	var dials atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range 16 {
		wg.Go(func() {
			for !stop.Load() {
				if due := int64(time.Since(began).Seconds() * float64(rate)); dials.Load() >= due {
					time.Sleep(time.Millisecond)
					continue
				}
				nc, err := net.Dial("tcp", server.config.Address)
				if err != nil {
					continue
				}
				dials.Add(1)
				nc.(*net.TCPConn).SetLinger(0) // otherwise the ports are soon used up
				nc.Close()
			}
		})
	}
	f.beside = measure()
	stop.Store(true)
	wg.Wait()
	f.dials = dials.Load()
	f.rate = float64(f.dials) / time.Since(began).Seconds()
	return f
}

// Thousands of clients whose server was restarted come back.
func TestReconnectAtOnce(t *testing.T) {
	clients := 500
	if faultTime(0, 1) == 1 {
		clients = 5000
	}
	took := reconnect(t, clients)
	t.Logf("%d clients were back within %v", clients, took.Round(time.Millisecond))
}

// reconnect returns how long it takes until the last client has a reply after its server was restarted.
func reconnect(t *testing.T, clients int) time.Duration {
	t.Helper()
	server := start(t, "plain", config{Address: freeAddress()})
	all := make([]*anser.Client, clients)
	for i := range all {
		all[i] = apart(t, server.config.Address)
		if err := echo(context.Background(), all[i], "Plain.Echo", 1); err != nil {
			t.Fatal(err)
		}
	}
	server.kill()
	// Each notices now, and goes on trying until the server is back.
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			for {
				err := echo(ctx, c, "Plain.Echo", 1)
				if err == nil {
					return
				}
				if ctx.Err() != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	start(t, "plain", server.config)
	began := time.Now()
	wg.Wait()
	return time.Since(began)
}
