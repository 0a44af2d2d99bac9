package protocols_test

import (
	"bufio"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
)

// The replies that an rpcx client leaves unread are counted, and beyond twice MaxMemory dropped.
// While they take a quarter of it, no further handler begins.
func TestUnreadRepliesOverRPCX(t *testing.T) {
	const memory, size, calls = 16 << 20, 1 << 20, 100
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer(anser.NoSignals(), anser.MaxMemory(memory), anser.Logger(slog.New(slog.DiscardHandler)), anser.Protocols(protocols.RPCXClients()))
		release := make(chan struct{})
		var begun atomic.Int64
		anser.Handle(s, "Echo.Large", func(context.Context, *[]byte) (*[]byte, error) {
			begun.Add(1)
			<-release
			reply := make([]byte, size)
			return &reply, nil
		}, anser.Concurrent())
		network := new(ansertest.Network)
		l := network.Listen("a:1")
		go s.Serve(l)
		defer s.Close()
		nc, err := network.Dial(t.Context(), "tcp", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		c := &old{nc, bufio.NewReader(nc)}
		call := func(n int) {
			for range n {
				c.Write(rpcxwire.Append(nil, rpcxwire.Head{Serialization: rpcxwire.Raw, Seq: 1}, "Echo", "Large", nil, nil))
			}
			synctest.Wait()
		}
		answers := func(n int) (dropped int64) {
			for range n {
				h, md, payload, err := c.receive()
				switch text := md[rpcxwire.ErrorKey]; {
				case err != nil:
					t.Fatal(err)
				case strings.Contains(text, "anser.MaxMemory"):
					dropped++
				case text != "" || len(payload) != size:
					t.Fatalf("%+v, %s, a reply of %d bytes", h, text, len(payload))
				}
			}
			synctest.Wait()
			if st := s.Stats(); st.Memory != 0 || st.InFlight != 0 {
				t.Errorf("%d bytes are held by %d calls in the end", st.Memory, st.InFlight)
			}
			return dropped
		}
		call(calls)
		if n := begun.Load(); n != calls {
			t.Fatalf("%d handlers run, want all", n)
		}
		close(release)
		synctest.Wait()
		st := s.Stats()
		want := st.LimitsHit["MaxMemory"]
		if st.Memory > 2*memory || want < calls-2*memory/size-5 {
			t.Errorf("%d bytes are held, %v", st.Memory, st.LimitsHit)
		}
		before := begun.Load()
		call(calls)
		if n := begun.Load() - before; n > 0 {
			t.Errorf("%d handlers have begun while %d bytes are unread", n, s.Stats().Memory)
		}
		if n := answers(2 * calls); n != want {
			t.Errorf("%d calls failed, and %d replies were dropped", n, want)
		}
	})
}
