package balance_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/balance"
)

// Five instances of equal weight, one ten times and one three times as slow as the others: a call
// every 400 µs for ten seconds, with keys. docs/balancing.md shows the output of -v.
func TestSpreadUnderSkewedLatency(t *testing.T) {
	base := []time.Duration{2, 2, 2, 6, 20} // ms
	type outcome struct {
		shares []float64
		mean   time.Duration
		p99    time.Duration
	}
	results := map[string]outcome{}
	for _, c := range constructors {
		list := endpointsWith(make([]int, len(base))...)
		picker := c.make().Build(list)
		var all []time.Duration
		r := &replay{
			list: list, interval: 400 * time.Microsecond,
			picker: pickFunc(func(*balance.Request) *balance.Endpoint { return picker.Pick(keyed(rand.IntN(1000))) }),
			latency: func(endpoint int, _ time.Duration) time.Duration {
				// A queue in front of the instance: more than ten concurrent calls wait for each
				// other.
				d := base[endpoint] * time.Millisecond * time.Duration(50+rand.IntN(100)) / 100
				d += d * time.Duration(min(max(list[endpoint].Active()-10, 0), 40)) / 10
				all = append(all, d)
				return d
			},
		}
		r.run(2 * time.Second)
		all = all[:0]
		counts := r.run(12 * time.Second)
		o := outcome{}
		for i := range counts {
			o.shares = append(o.shares, share(counts, i))
		}
		var sum time.Duration
		for _, d := range all {
			sum += d
		}
		slices.Sort(all)
		o.mean, o.p99 = sum/time.Duration(len(all)), all[len(all)*99/100]
		results[c.name] = o
		t.Logf("%-16s %s  mean %5.1f ms  p99 %5.1f ms", c.name, bars(o.shares), ms(o.mean), ms(o.p99))
	}
	slow := func(name string) float64 { return results[name].shares[4] }
	for _, name := range []string{"p2c", "ping", "least_active", "local_first", "closest"} {
		if slow(name) > .12 || results[name].mean >= results["round_robin"].mean {
			t.Errorf("%s gives the slow instance %.3f of the calls, mean %v: want well below a fifth, and a mean below that of round robin, %v",
				name, slow(name), results[name].mean, results["round_robin"].mean)
		}
	}
	for _, name := range []string{"random", "round_robin", "weighted"} {
		if slow(name) < .18 {
			t.Errorf("%s looks at latency: the slow instance gets %.3f", name, slow(name))
		}
	}
	if one := slices.Max(results["sticky"].shares); one != 1 {
		t.Errorf("sticky gives one instance %.3f", one)
	}
	if results["p2c"].mean > results["ping"].mean {
		t.Errorf("P2C has a mean of %v, ping %v", results["p2c"].mean, results["ping"].mean)
	}
}

type pickFunc func(*balance.Request) *balance.Endpoint

func (f pickFunc) Pick(r *balance.Request) *balance.Endpoint { return f(r) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func bars(shares []float64) string {
	var b strings.Builder
	for _, s := range shares {
		fmt.Fprintf(&b, "%5.1f%% ", 100*s)
	}
	return b.String()
}
