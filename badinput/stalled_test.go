package badinput_test

import (
	"net"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// Row 113: connections that begin a handshake and go no further, before TLS and in front of authentication, are ended
// in time, and those that stand go on. There are twice as many as the server shakes hands with at once.
func TestStalledHandshakes(t *testing.T) {
	const stalled = 192
	for name, begin := range map[string][]byte{"row113": nil, "row113b": []byte("\xA5NSR\x01"), "row113c": {0x16, 3, 1}} {
		for _, over := range transports {
			t.Run(name+"/"+over.name, func(t *testing.T) {
				t.Parallel()
				held.note(t, 113)
				g := guardedTarget(t, over, anser.MaxHandshakes(stalled/2), anser.HandshakeTimeout(stall))
				before := g.Stats()
				var conns []net.Conn
				for range stalled {
					nc, err := net.Dial(g.addr.Network(), g.addr.String())
					if err != nil {
						t.Fatal(err)
					}
					defer nc.Close()
					nc.Write(begin)
					conns = append(conns, nc)
				}
				for range 10 {
					g.others(t)
				}
				for _, nc := range conns {
					nc.SetDeadline(time.Now().Add(bound))
					for b := make([]byte, 512); ; {
						if _, err := nc.Read(b); err != nil {
							if e, ok := err.(net.Error); ok && e.Timeout() {
								t.Fatal("a connection that stalls is still open")
							}
							break
						}
					}
				}
				g.others(t)
				for end := time.Now().Add(bound); g.Stats().HandshakeFailed < before.HandshakeFailed+stalled; time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%d handshakes failed, want %d more than %d", g.Stats().HandshakeFailed, stalled, before.HandshakeFailed)
					}
				}
			})
		}
	}
}
