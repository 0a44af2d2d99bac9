package badinput_test

import (
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/testusage"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

func TestBadClients(t *testing.T) {
	toServer := func(r row) bool { return r.instead != nil || r.send != nil }
	// One after the other, so that the measurements belong to one row.
	t.Run("quick", func(t *testing.T) {
		for _, over := range transports {
			t.Run(over.name, func(t *testing.T) {
				testusage.Leaves(t, func() {
					t.Run("rows", func(t *testing.T) {
						g := newTarget(t, over)
						g.settle(t)
						each(t, false, func(r row) bool { return toServer(r) && !r.toServer.stall }, func(t *testing.T, r row) {
							for name, write := range manners {
								t.Run(name, func(t *testing.T) { g.alone(t, r.toServer, write) })
							}
						})
					})
				})
			})
		}
	})
	if testing.Short() {
		return
	}
	// Rows that mostly wait run concurrently.
	t.Run("stalled", func(t *testing.T) {
		testusage.Leaves(t, func() {
			t.Run("rows", func(t *testing.T) {
				each(t, true, func(r row) bool { return toServer(r) && r.toServer.stall }, func(t *testing.T, r row) {
					everywhere(t, func(t *testing.T, over transport, write func(net.Conn, []byte) error) {
						opts := []anser.ServerOption{anser.WriteStall(stall)}
						switch {
						case r.toServer.late:
							opts = []anser.ServerOption{anser.WriteStall(time.Hour), anser.ReadTimeout(stall)}
						case r.toServer.want.kind == refused:
							opts = append(opts, anser.HandshakeTimeout(stall))
						}
						g := newTarget(t, over, opts...)
						// All rows together must leave the machine mostly idle: then
						// handshakes and calls take far less than the timeouts.
						g.pause = stall / (2 * leastCalls)
						rest := g.work(t)
						g.attack(t, r.toServer, write, func() {})
						rest()
						hits := func() int64 { return g.Stats().LimitsHit["ReadTimeout"] }
						// The connection may close before the limit is counted.
						if r.toServer.late && !testusage.Soon(func() bool { return hits() == 1 }) {
							t.Errorf("ReadTimeout is counted %d times", hits())
						}
					})
				})
			})
		})
	})
}

// everywhere runs f concurrently over each transport and in each manner.
func everywhere(t *testing.T, f func(t *testing.T, over transport, write func(net.Conn, []byte) error)) {
	for _, over := range transports {
		for name, write := range manners {
			t.Run(over.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				f(t, over, write)
			})
		}
	}
}

// settle makes the server allocate everything that it keeps, and measures it at rest.
func (g *target) settle(t *testing.T) {
	t.Helper()
	for range 2 {
		rest := g.work(t)
		time.Sleep(impatience)
		rest()
	}
	g.before = testusage.Measure()
}

// alone sends a row while only the good connections make calls, and checks the common expectations
// of all rows.
func (g *target) alone(t *testing.T, r toServer, write func(net.Conn, []byte) error) {
	before := g.before // of the first row: so that together they leave nothing, either
	rest := g.work(t)
	g.attack(t, r, write, func() {
		// Resources of a connection that still exists.
		var growth int64
		within := testusage.Soon(func() bool {
			runtime.GC()
			growth = testusage.Now().Heap - before.Heap
			return growth <= testusage.HeapGrowth
		})
		if !within {
			t.Errorf("the heap has grown by %d KiB, the limit is %d", growth>>10, testusage.HeapGrowth>>10)
		}
	})
	rest()
	if err := before.Compare(); err != nil {
		t.Error(err)
	}
}

// answers holds what a bad client has read.
type answers struct {
	frames []wirepeer.Frame
	err    error
}

// attack sends a row and checks its effect. It calls look after the row, before its connection
// ends.
func (g *target) attack(t *testing.T, r toServer, write func(net.Conn, []byte) error, look func()) {
	before := g.Stats()
	nc := g.connect(t)
	g.inflict(t, r, nc, write)
	look()
	nc.Close()
	g.others(t)
	if n := g.bad.Load(); n != 0 {
		t.Errorf("the handler ran %d times", n)
	}
	after := g.Stats()
	for end := time.Now().Add(bound); !r.want.counted(before, after); after = g.Stats() {
		if time.Now().After(end) {
			t.Fatalf("%s: the counters were %+v and are %+v", r.want.counter(), before, after)
		}
		time.Sleep(time.Millisecond)
	}
	t.Log("counted by", r.want.counter())
	if after.Panics != 0 {
		t.Errorf("%d panics", after.Panics)
	}
}

// inflict sends a row over a connection and checks the answers.
func (g *target) inflict(t *testing.T, r toServer, nc net.Conn, write func(net.Conn, []byte) error) {
	t.Helper()
	if r.failing == 0 {
		r.failing = firstBadID
	}
	p := wirepeer.New(nc)
	out := make(chan answers, 1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		a := answers{err: p.ReadPreface()}
		introduced := !r.sealed                                                    // otherwise SETTINGS comes first, without a checksum
		open := 1                                                                  // unanswered calls
		failing := r.want.kind == fails || r.want.kind == breaks || r.want.replies // the first call is answered, too
		if failing {
			open++
		}
		for a.err == nil && open > 0 {
			var f wirepeer.Frame
			if f, a.err = p.Next(); a.err == nil {
				if !introduced {
					introduced, p.Sealed = true, true
				}
				a.frames = append(a.frames, f)
				if f.ID == goodID || failing && f.ID == r.failing && f.Type != wire.TypeWindow {
					open--
				}
			}
		}
		out <- a
	}()
	b := r.instead
	if b == nil {
		methods := methodNames()
		b = wirepeer.Hello(wire.DefaultSettings())
		if r.sealed {
			b, methods = wirepeer.Hello(wirepeer.Sealing()), wirepeer.Seal(methods)
		}
		b = slices.Concat(b, methods, r.send)
	}
	if r.want.kind == works || r.want.kind == fails || r.want.kind == breaks {
		good := wirepeer.Request(goodID, goodEcho, []byte("good"))
		if r.sealed {
			good = wirepeer.Seal(good)
		}
		b = append(b, good...)
	}
	began := time.Now()
	if err := write(nc, b); err == nil { // otherwise the server has already closed
		r.follow(nc, gone, stall)
	}
	a := <-out
	t.Logf("it took %v", time.Since(began).Round(time.Microsecond))
	r.check(t, a)
}

// methodNames returns the METHOD frames for the constants from badBytes on.
func methodNames() (frames []byte) {
	for i, name := range []string{"Bad.Bytes", "Bad.Struct", "Good.Echo", "Good.Wait", "Good.Slow", "Bad.Proto", "Bad.Self", "Bad.Only", "Good.Hold"} {
		frames = wire.AppendMethod(frames, uint32(i+1), name)
	}
	return frames
}

// check checks the server's answers.
func (r toServer) check(t *testing.T, a answers) {
	t.Helper()
	w := r.want
	var reason *wire.Reason
	byID := make(map[uint64]wirepeer.Frame)
	for _, f := range a.frames {
		byID[f.ID] = f
		if f.Type == wire.TypeClose {
			got, text, err := wire.ParseClose(f.Body)
			if err != nil {
				t.Error(err)
			}
			t.Logf("%s: %s", got, text)
			reason = &got
		}
	}
	switch w.kind {
	case closes, refused, finishes:
		if reason == nil || *reason != w.reason {
			t.Fatalf("closed with %v, %v; want %s", reason, a.err, w.reason)
		}
		if w.kind == refused && len(a.frames) != 1 {
			t.Errorf("%d frames before the handshake was over", len(a.frames))
		}
		if f := byID[firstBadID]; w.kind == finishes && (f.Type != wire.TypeReply) {
			t.Errorf("the open call got %s", f.Type)
		}
		return
	case fails, breaks:
		f := byID[r.failing]
		if f.Type != wire.TypeError {
			t.Fatalf("the bad call got %s, %v", f.Type, a.err)
		}
		if e, err := wire.ParseError(f.Flags, f.Body); e.Code != w.code || e.Outcome != w.outcome || err != nil {
			t.Errorf("the bad call got %+v, %v; want %s", e, err, w.code)
		}
	case works:
		if f := byID[firstBadID]; w.replies && f.Type != wire.TypeReply {
			t.Errorf("the call got %s, %v; want a reply", f.Type, a.err)
		}
	}
	if f := byID[goodID]; f.Type != wire.TypeReply {
		t.Errorf("the good call of the connection got %s, %v, closed with %v", f.Type, a.err, reason)
	} else if r, err := wire.ParseReply(f.Flags, f.Body); string(r.Payload) != "good" || err != nil {
		t.Errorf("the good call of the connection got %q, %v", r.Payload, err)
	}
}

// counted reports whether the counters match the effect.
func (w want) counted(before, after anser.ServerStats) bool {
	name := w.reason.String()
	switch w.kind {
	case closes:
		return after.Closed[name] == before.Closed[name]+1
	case refused:
		return after.Closed[name] == before.Closed[name]+1 && after.HandshakeFailed == before.HandshakeFailed+1
	case fails:
		return after.Refused == before.Refused+1
	case breaks:
		// Good.Wait returns without an error.
		ran := func(s anser.ServerStats) int64 { return s.Methods["Good.Hold"].Failed + s.Methods["Good.Wait"].Calls }
		return ran(after) == ran(before)+1 && after.Streams == 0
	case finishes:
		return after.Methods["Good.Slow"].Calls == before.Methods["Good.Slow"].Calls+1
	}
	return true
}

// counter names the counter for the row.
func (w want) counter() string {
	switch w.kind {
	case closes:
		return "Closed[" + w.reason.String() + "]"
	case refused:
		return "HandshakeFailed and Closed[" + w.reason.String() + "]"
	case fails:
		return "Refused"
	case breaks:
		return "Methods[…].Failed"
	case finishes:
		return "Methods[…].Calls"
	}
	return "nothing: it is good"
}
