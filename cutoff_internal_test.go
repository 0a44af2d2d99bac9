package anser

import (
	"fmt"
	"net"
	"testing"
	"time"
)

type allowAll struct{}

func (allowAll) Allows(*Identity, string) bool { return true }
func (allowAll) Version() uint64               { return 1 }

// BenchmarkSweep is what one look at 10,000 connections with an open call each costs, without a
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
				c := &serverConn{server: s, trust: new(trust)}
				c.writer.init(nc, &s.conns, &c.streams)
				c.trust.now.Store(now)
				c.openLocked(&callContext{conn: c, method: m, id: 1})
				conns[i] = c
			}
			for b.Loop() {
				now := nanotime()
				for _, c := range conns {
					c.tendTrust(now, changed)
				}
			}
		})
	}
}
