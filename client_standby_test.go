package anser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
)

// loneCalls makes the goroutine of a connection park.
const loneCalls = 8

func callsInTurn(t *testing.T, c *anser.Client, n int) {
	t.Helper()
	for range n {
		if out, err := call(context.Background(), c, "Echo.Say", "x"); out != "x" || err != nil {
			t.Fatal(out, err)
		}
	}
}

// A connection without calls goes back to its goroutine, and the sweep no longer looks at it.
func TestQuietConnectionsDoNotTick(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		for round := range 3 {
			callsInTurn(t, c, loneCalls)
			if conns, _ := c.Standbys(); conns != 1 {
				t.Fatalf("round %d: %d connections stand by after calls in turn, want 1", round, conns)
			}
			time.Sleep(100 * time.Millisecond)
			conns, looks := c.Standbys()
			if most := uint64(10 * (round + 1)); conns != 0 || looks > most {
				t.Fatalf("round %d: %d connections still stand by after %d looks, want none after %d", round, conns, looks, most)
			}
			time.Sleep(time.Hour)
			if _, later := c.Standbys(); later != looks {
				t.Fatalf("round %d: %d looks while nothing was called", round, later-looks)
			}
		}
	})
}

// One sweep looks at all connections of a client, however many there are.
func TestOneSweepForAllConnections(t *testing.T) {
	const hosts, busyFor = 40, 100 * time.Millisecond
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var addresses []string
		for i := range hosts {
			a := fmt.Sprintf("a:%d", i+1)
			addresses = append(addresses, a)
			serve(t, network.Listen(a), map[string]handler{"Echo.Say": echo})
		}
		c := dial(t, strings.Join(addresses, ","), anser.Dialer(network.Dial), anser.Conns(1), anser.Balancer(balance.RoundRobin()))
		callsInTurn(t, c, 4*loneCalls*hosts)
		_, before := c.Standbys()
		for range busyFor / time.Millisecond {
			callsInTurn(t, c, hosts)
			time.Sleep(time.Millisecond)
		}
		conns, after := c.Standbys()
		if conns < hosts/2 {
			t.Fatalf("%d of %d connections stand by although their callers read for themselves", conns, hosts)
		}
		if most := uint64(busyFor/(2*time.Millisecond)) + 1; after-before > most {
			t.Fatalf("%d looks in %v, want at most %d", after-before, busyFor, most)
		}
	})
}

// A connection whose goroutine is parked when its server goes away is not used for the next call,
// and Close does not wait for the sweep.
func TestTheEndOfAConnectionThatStandsBy(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		callsInTurn(t, c, loneCalls)
		s.Close()
		began := time.Now()
		for c.Status().Instances[0].Connected && time.Since(began) < time.Second {
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(began); d > 10*time.Millisecond {
			t.Fatalf("the end of the connection was noticed after %v", d)
		}
		serve(t, network.Listen("b:1"), map[string]handler{"Echo.Say": echo})
		other := dial(t, "b:1", anser.Dialer(network.Dial), anser.Conns(1))
		callsInTurn(t, other, loneCalls)
		synctest.Wait()
		began = time.Now()
		if err := other.Close(); err != nil || time.Since(began) != 0 {
			t.Fatal(err, time.Since(began))
		}
	})
}
