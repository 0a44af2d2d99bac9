package e2e_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// shortage is what a server did that had no file descriptors left.
type shortage struct {
	open      int           // connections that took them
	calls     int           // on connections that stood before
	failed    int           // of those
	processor float64       // share of one that the server used while it could do nothing
	recovered time.Duration // until a new client had its first reply, after there were some again
}

// A server that has no file descriptors left goes on with the connections that it has, does not spin, and takes new
// ones as soon as there are some again.
func TestDescriptorsUsedUp(t *testing.T) {
	f := useUpDescriptors(t, 64, faultTime(2*time.Second, 20*time.Second))
	t.Logf("%d connections used up the descriptors; %d calls on another one, %d failed; the server used %.1f %% of a processor; a new client was served after %v",
		f.open, f.calls, f.failed, 100*f.processor, f.recovered.Round(time.Millisecond))
	if f.failed > 0 || f.calls == 0 {
		t.Errorf("%d of %d calls failed", f.failed, f.calls)
	}
	if f.processor > 0.5 { // it would be 1, and is less than 0.05 on a quiet machine
		t.Errorf("the server spins: it used %.0f %% of a processor", 100*f.processor)
	}
}

func useUpDescriptors(t *testing.T, limit int, lasts time.Duration) (f shortage) {
	t.Helper()
	server := start(t, "plain", config{Address: freeAddress(), Calls: limit})
	address := server.config.Address
	good := apart(t, address)
	if err := echo(context.Background(), good, "Plain.Echo", 1); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // is open before and after
		for range 3 {
			if err := echo(context.Background(), good, "Plain.Slow", 1); err != nil {
				t.Error(err)
			}
		}
	})
	var conns []net.Conn
	for range 2 * limit { // what is not accepted waits in the listener's queue
		nc, err := occupy(address)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		conns = append(conns, nc)
	}
	f.open = len(conns)
	wg.Wait()
	before, known := server.processorTime()
	began := time.Now()
	for time.Since(began) < lasts {
		f.calls++
		if err := echo(context.Background(), good, "Plain.Echo", 1, anser.Fail(anser.Failfast)); err != nil {
			t.Log(err)
			f.failed++
		}
		time.Sleep(50 * time.Millisecond)
	}
	if after, _ := server.processorTime(); known {
		f.processor = float64(after-before) / float64(time.Since(began))
	}
	late := apart(t, address, anser.Timeout(bound), anser.ConnectTimeout(bound), anser.HandshakeTimeout(bound))
	for _, nc := range conns {
		nc.Close()
	}
	began = time.Now()
	if err := echo(context.Background(), late, "Plain.Echo", 1); err != nil {
		t.Error(err)
	}
	f.recovered = time.Since(began)
	return f
}
