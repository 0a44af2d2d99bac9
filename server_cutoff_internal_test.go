package anser

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

type allowAll struct{}

func (allowAll) Allows(*Identity, string) bool { return true }
func (allowAll) Version() uint64               { return 1 }

// BenchmarkSweep measures one check of 10,000 connections with an open call each, without a
// change of the policy and with one.
func BenchmarkSweep(b *testing.B) {
	for _, changed := range []bool{false, true} {
		b.Run(fmt.Sprintf("changed=%v", changed), func(b *testing.B) {
			s := NewServer(Authorize(allowAll{}))
			m := &method{name: "Held.Call"}
			now, err := newProof(&Identity{Subject: "ann", Expires: time.Now().Add(time.Hour), Revoked: func() bool { return false }}, "test")
			if err != nil {
				b.Fatal(err)
			}
			conns := make([]*serverConn, 10_000)
			for i := range conns {
				nc, _ := net.Pipe()
				c := newServerConn(s)
				c.auth = new(connAuth)
				c.writer.init(nc, &s.conns, &c.streams)
				c.auth.now.Store(now)
				c.openLocked(&callContext{conn: &c.calleeHalf, method: m, id: 1})
				conns[i] = c
			}
			for b.Loop() {
				now := mono.Now()
				for _, c := range conns {
					c.tendTrust(now, changed)
				}
			}
		})
	}
}

// The other connection of a session is lost while one is set aside. A renewal wakes the waiting
// calls.
func TestRenewalWakesWaitingCalls(t *testing.T) {
	h := newHost(new(pool), hostOptions{}, nil)
	defer h.cancel()
	late, other := new(callerHalf), new(callerHalf)
	h.ready.Store(&[]*callerHalf{late, other})
	h.setAside(late)
	if list := *h.ready.Load(); len(list) != 1 || list[0] != other {
		t.Fatalf("%d connections are in use, want the other one", len(list))
	}
	h.mu.Lock()
	h.ready.Store(new([]*callerHalf))
	h.failures = 1
	waiting := h.changed
	h.mu.Unlock()
	h.putBack(late)
	select {
	case <-waiting:
	default:
		t.Error("calls that wait for a connection were not woken")
	}
	if !h.Connected() || h.Reach().Down() {
		t.Error("the connection is not in use again")
	}
	h.ready.Store(new([]*callerHalf)) // for example, it has no method numbers left
	if h.putBack(late); h.Connected() {
		t.Error("a connection came back that was not set aside")
	}
}
