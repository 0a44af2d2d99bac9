package balance_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
)

// Whatever the kind and length of an outage, a recovered instance gets calls again within seconds,
// and soon about its share. A picker that prefers fast endpoints must not avoid one forever
// because it has no recent samples.
func TestRecoveredInstancesAreUsedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	for _, b := range []balance.Balancer{
		balance.Random(), balance.RoundRobin(), balance.Weighted(), balance.LeastActive(), balance.P2C(), balance.Ping(),
	} {
		t.Run(b.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(2, 8).Draw(t, "endpoints")
				ill := rapid.IntRange(0, n-1).Draw(t, "who is ill")
				begin := time.Duration(rapid.IntRange(0, 3000).Draw(t, "from, ms")) * time.Millisecond
				end := begin + time.Duration(rapid.IntRange(50, 15_000).Draw(t, "for, ms"))*time.Millisecond
				kind := rapid.SampledFrom([]string{"stalls", "is slow", "refuses"}).Draw(t, "kind")
				list := endpointsWith(slices.Repeat([]int{100}, n)...)
				isIll := func(endpoint int, now time.Duration) bool { return endpoint == ill && now >= begin && now < end }
				r := &replay{
					list: list, picker: b.Build(list),
					interval: time.Duration(rapid.IntRange(2, 10).Draw(t, "a call every, ms")) * time.Millisecond,
					latency: func(endpoint int, now time.Duration) time.Duration {
						jitter := time.Duration(rand.Int64N(int64(time.Millisecond)))
						switch {
						case !isIll(endpoint, now):
							return 2*time.Millisecond + jitter
						case kind == "stalls":
							return 3 * time.Second // the caller's timeout
						case kind == "is slow":
							return 200*time.Millisecond + jitter
						}
						return 100 * time.Microsecond
					},
					fails: func(endpoint int, now time.Duration) bool { return kind == "refuses" && isIll(endpoint, now) },
				}
				r.run(end)
				// The slowest endpoint gets one call in 113 by chance: none of 3,000 is
				// practically impossible.
				at := end + 3000*r.interval
				if got := r.run(at)[ill]; got == 0 {
					t.Fatal("no call of 3,000 after it is well")
				}
				at += 10 * time.Second
				r.run(at)
				// P2C remembers peaks for seconds, so with few calls per second the shares of
				// healthy endpoints differ, too; over a longer time they differ less.
				if got := share(r.run(at+40*time.Second), ill); got < .3/float64(n) {
					t.Fatalf("%.3f of the calls of 40 s, soon after it is well: want about %.3f", got, 1/float64(n))
				}
			})
		})
	}
}
