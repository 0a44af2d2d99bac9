package anser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
)

// crowd returns a client of n instances that makes no calls.
func crowd(tb testing.TB, n int) (*Client, *clientMethod) {
	tb.Helper()
	var addresses []string
	for i := range n {
		addresses = append(addresses, fmt.Sprintf("host-%d:1", i))
	}
	c, err := Dial("tcp://"+strings.Join(addresses, ","), Subset(0, 0), Logger(slog.New(slog.DiscardHandler)),
		Dialer(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody is there") }))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	m, err := c.method("Echo.Say")
	if err != nil {
		tb.Fatal(err)
	}
	return c, m
}

// A client picks without an allocation, whether it counts successes or not. The other states of the
// health of its instances are in the test of package cluster.
func TestPickAllocatesNothing(t *testing.T) {
	for _, counting := range []bool{false, true} {
		c, m := crowd(t, 100)
		k := c.pool.getCall()
		if counting {
			c.pick(k, m).Suspect()
		}
		if n := testing.AllocsPerRun(1000, func() { c.pick(k, m).Counting() }); n > 0 {
			t.Errorf("counting %v: a pick allocates %v times", counting, n)
		}
	}
}

// BenchmarkClientPick picks among a thousand instances.
func BenchmarkClientPick(b *testing.B) {
	for _, counting := range []bool{false, true} {
		b.Run(fmt.Sprintf("counting=%v", counting), func(b *testing.B) {
			c, m := crowd(b, 1000)
			if counting {
				c.pick(c.pool.getCall(), m).Suspect()
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				k := c.pool.getCall()
				for pb.Next() {
					c.pick(k, m)
				}
			})
		})
	}
}
