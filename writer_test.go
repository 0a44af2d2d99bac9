package anser_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
)

// A peer that reads slowly but all the time has not stalled, however long the message takes.
func TestSlowReaderIsNotAStall(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		network.Buffer = 64 << 10
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			buf := make([]byte, 10<<10)
			for read := 0; read < 1<<20; time.Sleep(250 * time.Millisecond) {
				n, err := p.Conn.Read(buf)
				if err != nil {
					return
				}
				read += n
			}
			p.Send(wirepeer.Reply(1, []byte("got it")))
			p.Next()
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		began := time.Now()
		out, err := call(context.Background(), c, "Echo.Say", strings.Repeat("x", 1<<20), anser.Timeout(0))
		if out != "got it" || err != nil {
			t.Fatal(out, err)
		}
		if d := time.Since(began); d < 20*time.Second {
			t.Fatalf("the message took only %v", d)
		}
	})
}
