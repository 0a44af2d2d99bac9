package anser_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A peer that reads slowly but steadily has not stalled, however long the message takes.
func TestSlowReaderIsNotAStall(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		network.Buffer = 64 << 10
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			buf := make([]byte, 10<<10)
			for read := 4 << 10; read < 1<<20; time.Sleep(250 * time.Millisecond) { // the handshake may have read 4 KiB of it
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

// The reason why a side closes a connection reaches the peer, even if a write was under way.
func TestCloseWaitsForTheWriteUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var conn *ansertest.FaultyConn
		l := ansertest.FaultyListener(network.Listen("a:1"), ansertest.Faults{}, func(c *ansertest.FaultyConn) { conn = c })
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Say", echo, anser.Concurrent())
		run(t, s, l)
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
		synctest.Wait()
		conn.Stall()
		p.Send(wirepeer.Request(1, 1, []byte("hello")))
		synctest.Wait() // the reply is being written
		p.Send(wire.AppendHeader(nil, wire.Header{Type: 0x7F, ID: 1}))
		synctest.Wait()
		conn.Resume()
		if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
			t.Fatal(f.Type, err)
		}
		if reason, _, err := p.ReadClose(); reason != wire.BadFrame || err != nil {
			t.Fatal(reason, err)
		}
	})
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c, conn, peers := stalled(t, network)
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"))
		p := <-peers
		conn.Stall()
		p.Send(wire.AppendPing(nil, wire.TypePing, 7), wire.AppendHeader(nil, wire.Header{Type: 0x7F, ID: 1}))
		synctest.Wait()
		conn.Resume()
		if f, err := p.Next(); f.Type != wire.TypePong || err != nil {
			t.Fatal(f.Type, err)
		}
		if reason, _, err := p.ReadClose(); reason != wire.BadFrame || err != nil {
			t.Fatal(reason, err)
		}
		_, err := reply.Wait()
		wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
	})
}

// refusing is a connection whose writes fail after some bytes, while its reads block.
type refusing struct {
	net.Conn
	after int64 // bytes; 0: never
}

func (c *refusing) Write(b []byte) (int, error) {
	after := atomic.LoadInt64(&c.after)
	if after == 0 {
		return c.Conn.Write(b)
	}
	n := min(int64(len(b)), after-1)
	c.Conn.Write(b[:n])
	return int(n), syscall.EPIPE
}

// A call of which the transport took no byte was not sent; a call of which it took some may have
// run.
func TestOutcomeOfAFailedWrite(t *testing.T) {
	for after, want := range map[int64]anser.Outcome{1: anser.NotSent, 2: anser.OutcomeUnknown, 20: anser.OutcomeUnknown} {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
			var conns []*refusing
			c := dial(t, "a:1", anser.Conns(1), anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
				nc, err := network.Dial(ctx, kind, address)
				if err == nil {
					conns = append(conns, &refusing{Conn: nc})
					nc = conns[len(conns)-1]
				}
				return nc, err
			}))
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			atomic.StoreInt64(&conns[0].after, after)
			_, err := call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(anser.Failfast))
			wantFault(t, err, anser.Unavailable, want)
		})
	}
}
