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

// A bad client must not hurt the calls of its neighbours more than a good client does that asks for as
// much. Both are tried in turns, in short windows, so that what else the machine does hurts both: the
// ratio of the p99 latencies of a round is a sample, and the median of the samples decides. A row passes
// when the median is below maxRatio after leastRounds or any later round; one that hurts in most rounds
// has no such round.
const (
	maxRatio    = 2.0
	leastRounds = 3
	mostRounds  = 31
	windowCalls = 24      // calls of each good connection in a window
	lastID      = 1 << 40 // of the last request of a newcomer
)

func TestNeighbours(t *testing.T) {
	for _, over := range transports {
		t.Run(over.name, func(t *testing.T) {
			g := newTarget(t, over)
			g.settle(t)
			each(t, false, row.sentQuickly, func(t *testing.T, r row) {
				var lasted time.Duration
				holdRatio(t, func() time.Duration {
					return g.window(t, func() {
						began := time.Now()
						nc := g.connect(t)
						g.inflict(t, r.toServer, nc, manners["whole"])
						nc.Close()
						lasted = time.Since(began)
					})
				}, func() time.Duration {
					return g.window(t, func() { g.newcomer(t, r.toServer, lasted) })
				})
			})
		})
	}
}

// sentQuickly reports whether a client sends the row, and nothing waits in it.
func (r row) sentQuickly() bool { return (r.instead != nil || r.send != nil) && !r.toServer.stall }

// holdRatio measures the p99 latency of neighbours beside what is bad and beside what is good until the median of
// the ratios is below maxRatio, and fails when that does not happen.
func holdRatio(t *testing.T, bad, good func() time.Duration) {
	t.Helper()
	if t.Failed() {
		return
	}
	bad() // what is done for the first time takes longer
	good()
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
		if median := ratios[len(ratios)/2]; len(ratios) >= leastRounds && median < maxRatio {
			t.Logf("the p99 latency of the neighbours is %.2f times what it is otherwise", median)
			return
		}
	}
	if t.Failed() {
		return
	}
	t.Errorf("the p99 latency of the neighbours is %.2f times what it is otherwise, in the median of %d rounds; the limit is %g",
		ratios[len(ratios)/2], len(ratios), maxRatio)
}

// window has each good connection make windowCalls calls, f run beside them, and returns their p99 latency.
func (g *target) window(t *testing.T, f func()) time.Duration {
	t.Helper()
	took := make([][]time.Duration, len(g.good))
	var wg, warm sync.WaitGroup
	warm.Add(len(g.good))
	for i, c := range g.good {
		wg.Go(func() {
			in := fmt.Appendf(nil, "hello %d", i)
			for n := range windowCalls {
				if n == 2 {
					warm.Done()
				}
				began := time.Now()
				_, err := anser.Call[[]byte](context.Background(), c, "Good.Echo", &in, anser.Fail(anser.Failfast))
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

// newcomer is a good client that connects and asks for as much as the row does. Where the row does not end
// by itself, the requests go on for as long as the row lasted.
func (g *target) newcomer(t *testing.T, r toServer, lasted time.Duration) {
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
	requests, count := r.counterpart(1)
	_, err := nc.Write(slices.Concat(wirepeer.Hello(wire.DefaultSettings()), methodNames(), requests))
	for began := time.Now(); err == nil && r.flood != nil && time.Since(began) < lasted; {
		var more int
		requests, more = r.counterpart(uint64(count + 1))
		count += more
		_, err = nc.Write(requests)
	}
	if err == nil {
		_, err = nc.Write(wirepeer.Request(lastID, goodEcho, nil))
	}
	if err := errors.Join(err, <-read); err != nil {
		t.Errorf("a good newcomer: %v", err)
	}
}

// counterpart returns good requests with ids from the given one on that ask for as much as one write of
// the row does, and their number: as many frames with as many bytes, or what the row names.
func (r toServer) counterpart(id uint64) (requests []byte, count int) {
	if r.asMuchAs != nil {
		return r.asMuchAs, 1
	}
	sent := slices.Concat(r.instead, r.send)
	if r.flood != nil {
		sent = r.flood(0)
	}
	size := len(sent)
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
		requests = append(requests, wirepeer.Request(id+uint64(i), goodEcho, payload)...)
	}
	return requests, count
}
