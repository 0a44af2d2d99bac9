package badinput_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A bad client must not slow down the calls of its neighbours more than a good client with the
// same load. Both are tried in turn, in short windows, so that other load on the machine affects
// both: the ratio of the p99 latencies of a round is a sample, and the median of the samples
// decides. A series passes when the median is below maxRatio after leastRounds or any later round,
// and a row when one of its series does. A row that is slower in most rounds has no such series.
const (
	maxRatio    = 2.0
	leastRounds = 3
	mostRounds  = 31
	series      = 4
	windowCalls = 24      // calls per good connection and window
	floodCalls  = 50_000  // of the counterpart of a flood
	lastID      = 1 << 40 // of the last request of a newcomer
)

func TestNeighbours(t *testing.T) {
	if testing.Short() {
		t.Skip("measures latencies for minutes")
	}
	for i, over := range transports {
		t.Run(over.name, func(t *testing.T) {
			g := newTarget(t, over, anser.MaxInFlight(100_000)) // one client alone may use up the default
			g.settle(t)
			// Every row is measured over the first transport and one other, which its number
			// decides: what a row costs the server comes after the transport. TestBadClients sends
			// it over all.
			measured := func(r row) bool { return r.sentQuickly() && (i == 0 || i-1 == r.number%(len(transports)-1)) }
			each(t, false, measured, func(t *testing.T, r row) {
				holdRatio(t, func() time.Duration {
					return g.window(t, func() {
						nc := g.connect(t)
						g.inflict(t, r.toServer, nc, manners["whole"])
						nc.Close()
					})
				}, func() time.Duration {
					return g.window(t, func() { g.newcomer(t, r.toServer) })
				})
			})
		})
	}
}

// sentQuickly reports whether a client sends the row, without waiting, and the limit applies to
// it.
func (r row) sentQuickly() bool {
	return (r.instead != nil || r.send != nil) && !r.toServer.stall
}

// holdRatio measures the p99 latency of neighbours next to the bad and the good client until the
// median of the ratios is below maxRatio, and fails if no series of rounds achieves that.
func holdRatio(t *testing.T, bad, good func() time.Duration) {
	t.Helper()
	bad() // the first run takes longer
	good()
	var medians []float64
	for range series {
		median := seriesOfRounds(t, bad, good)
		if t.Failed() {
			return
		}
		if median < maxRatio {
			t.Logf("the p99 latency of the neighbours is %.2f times what it is otherwise", median)
			return
		}
		medians = append(medians, median)
	}
	t.Errorf("the p99 latency of the neighbours is %.2f times what it is otherwise, in the medians of %d rounds each; the limit is %g",
		medians, mostRounds, maxRatio)
}

// seriesOfRounds returns the first median below maxRatio, or that of mostRounds.
func seriesOfRounds(t *testing.T, bad, good func() time.Duration) (median float64) {
	t.Helper()
	var ratios []float64
	for len(ratios) < mostRounds && !t.Failed() {
		var besideBad, besideGood time.Duration
		if len(ratios)%2 == 0 {
			besideBad, besideGood = bad(), good()
		} else {
			besideGood, besideBad = good(), bad()
		}
		ratios = append(ratios, float64(besideBad)/float64(besideGood))
		slices.Sort(ratios)
		if median = ratios[len(ratios)/2]; len(ratios) >= leastRounds && median < maxRatio {
			break
		}
	}
	return median
}

// window makes each good connection make windowCalls calls while f runs, and returns their p99
// latency.
func (g *target) window(t *testing.T, f func()) time.Duration {
	t.Helper()
	return window(t, len(g.good), func(i int) error {
		in := fmt.Appendf(nil, "hello %d", i)
		_, err := anser.Call[[]byte](context.Background(), g.good[i], "Good.Echo", &in, anser.WithFailMode(anser.Failfast))
		return err
	}, f)
}

// window makes windowCalls calls on each of n connections while f runs, and returns their p99
// latency.
func window(t *testing.T, n int, call func(i int) error, f func()) time.Duration {
	t.Helper()
	took := make([][]time.Duration, n)
	var wg, warm sync.WaitGroup
	warm.Add(n)
	for i := range n {
		wg.Go(func() {
			for n := range windowCalls {
				if n == 2 {
					warm.Done()
				}
				began := time.Now()
				err := call(i)
				took[i] = append(took[i], time.Since(began))
				if err != nil {
					t.Errorf("a good connection: %v", err)
				}
				time.Sleep(100 * time.Microsecond)
			}
		})
	}
	warm.Wait()
	f()
	wg.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	return all[len(all)*99/100]
}

// newcomer is a good client that connects and makes requests of the same cost as the row.
func (g *target) newcomer(t *testing.T, r toServer) {
	t.Helper()
	nc := g.connect(t)
	defer nc.Close()
	read := make(chan error, 1)
	go func() {
		p := wirepeer.New(nc)
		_, err := p.ReadHello()
		for f := (wirepeer.Frame{}); err == nil && f.ID != lastID; {
			f, err = p.Next()
		}
		read <- err
	}()
	_, err := nc.Write(slices.Concat(wirepeer.Hello(wire.DefaultSettings()), methodNames(), r.counterpart(),
		wirepeer.Request(lastID, goodEcho, nil)))
	if err := errors.Join(err, <-read); err != nil {
		t.Errorf("a good newcomer: %v", err)
	}
}

// counterpart returns good requests of the same cost as the row: the same number of frames with
// the same number of bytes, or the row's asMuchAs.
func (r toServer) counterpart() (requests []byte) {
	if r.asMuchAs != nil {
		return r.asMuchAs
	}
	if r.flood != nil { // the row sends more than twice as many until it is cut off
		for id := range uint64(floodCalls) {
			requests = append(requests, wirepeer.Request(id+1, goodEcho, nil)...)
		}
		return requests
	}
	sent := slices.Concat(r.instead, r.send)
	size, count := len(sent), 0
	for len(sent) >= wire.HeaderSize {
		frame := wire.HeaderSize + int64(binary.LittleEndian.Uint32(sent))
		if int64(len(sent)) < frame {
			break
		}
		sent = sent[frame:]
		count++
	}
	count = max(count, 1)
	payload := make([]byte, max(min(size/count, maxMessage)-wire.HeaderSize-wire.RequestSize, 0))
	for i := range count {
		requests = append(requests, wirepeer.Request(uint64(i+1), goodEcho, payload)...)
	}
	return requests
}
