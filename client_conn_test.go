package anser_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

// Invalid trailers are an error of their call only.
func TestBadTrailersFromAServer(t *testing.T) {
	network := new(ansertest.Network)
	bad := wire.AppendMetadata(nil, []wire.Pair{{Key: "Upper", Value: "x"}})
	rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
		for {
			f, err := p.NextOf(wire.TypeRequest)
			if err != nil {
				return
			}
			switch f.ID {
			case 1:
				frame := wire.AppendReplyHead(nil, f.ID, 0, 1, 0, bad)
				wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
				p.Send(frame)
			case 2:
				p.Send(wirepeer.Fault(f.ID, wire.ErrorBody{Code: wire.NotFound, Outcome: wire.Executed, Message: "no such thing", Metadata: bad}))
			default:
				p.Send(wirepeer.Reply(f.ID, []byte("ok")))
			}
		}
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	var md anser.Metadata
	_, err := call(context.Background(), c, "Echo.Say", "", anser.Trailer(&md))
	e := wantFault(t, err, anser.Internal, anser.Executed)
	if !strings.Contains(e.Message, `"Upper"`) || md != nil {
		t.Fatal(e.Message, md)
	}
	_, err = call(context.Background(), c, "Echo.Say", "", anser.Trailer(&md))
	wantFault(t, err, anser.NotFound, anser.Executed)
	if md != nil {
		t.Fatal(md)
	}
	if out, err := call(context.Background(), c, "Echo.Say", ""); out != "ok" || err != nil {
		t.Fatal(out, err)
	}
}

// stalled returns a client whose connection stops accepting writes after its first call, which is
// answered. It also returns the connection, and the peer at the other end once it has read the
// second call.
func stalled(t *testing.T, network *ansertest.Network) (*anser.Client, *ansertest.FaultyConn, chan *wirepeer.Peer) {
	peers := make(chan *wirepeer.Peer, 1)
	rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
		f, _ := p.NextOf(wire.TypeRequest)
		p.Send(wirepeer.Reply(f.ID, nil))
		if _, err := p.NextOf(wire.TypeRequest); err == nil {
			peers <- p
		}
	})
	var conn *ansertest.FaultyConn
	dialFaulty := ansertest.FaultyDial(network.Dial, ansertest.Faults{}, func(c *ansertest.FaultyConn) { conn = c })
	once := func(ctx context.Context, kind, address string) (net.Conn, error) {
		if conn != nil {
			return nil, errors.New("there is a connection already")
		}
		return dialFaulty(ctx, kind, address)
	}
	c := dial(t, "a:1", anser.Dialer(once), anser.Conns(1))
	if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
		t.Fatal(err)
	}
	return c, conn, peers
}

// A call ends without waiting until the server can be told.
func TestEndOfACallOnAStalledConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c, conn, peers := stalled(t, network)
		ctx, cancel := context.WithCancel(context.Background())
		cancelled := anser.Go[[]byte](ctx, c, "Echo.Say", text("a"))
		<-peers
		expired := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("b"), anser.Timeout(2*time.Second))
		synctest.Wait()
		conn.Stall()
		began := time.Now()
		cancel()
		_, err := cancelled.Wait()
		wantFault(t, err, anser.Canceled, anser.OutcomeUnknown)
		if d := time.Since(began); d != 0 {
			t.Errorf("cancelling took %v", d)
		}
		conn.Resume()
		synctest.Wait()
		conn.Stall()
		_, err = expired.Wait()
		wantFault(t, err, anser.DeadlineExceeded, anser.OutcomeUnknown)
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("a call of 2 s ended after %v", d)
		}
	})
}

// Nor does a call wait for the write of its own request.
func TestEndOfACallWhoseWriteStalls(t *testing.T) {
	for name, cancelled := range map[string]bool{"cancelled": true, "expired": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				c, conn, _ := stalled(t, network)
				conn.Stall()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				want := anser.DeadlineExceeded
				if cancelled {
					want = anser.Canceled
					time.AfterFunc(time.Second, cancel)
				}
				began := time.Now()
				_, err := call(ctx, c, "Echo.Say", "a", anser.Timeout(2*time.Second))
				e := wantFault(t, err, want, anser.OutcomeUnknown)
				if d := time.Since(began); cancelled && d != time.Second || !cancelled && d != 2*time.Second {
					t.Errorf("ended after %v: %v", d, e)
				}
			})
		})
	}
}

// The caller whose goroutine writes returns although others continue to make calls.
func TestWriterUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		slow := ansertest.FaultyDial(network.Dial, ansertest.Faults{Delay: time.Millisecond}, nil)
		c := dial(t, "a:1", anser.Dialer(slow), anser.Conns(1))
		end := time.Now().Add(time.Second)
		var wg sync.WaitGroup
		var longest atomic.Int64
		for range 20 {
			wg.Go(func() {
				for time.Now().Before(end) {
					began := time.Now()
					if _, err := call(context.Background(), c, "Echo.Say", "a"); err != nil {
						t.Error(err)
					}
					if d := int64(time.Since(began)); d > longest.Load() {
						longest.Store(d)
					}
				}
			})
		}
		wg.Wait()
		if d := time.Duration(longest.Load()); d > 10*time.Millisecond {
			t.Errorf("a call took %v, each write takes 1 ms", d)
		}
	})
}

// The same over real sockets, where the remainder of a blocked write goes on later: a peer that
// stops reading for a while finally reads everything, complete.
func TestWritesToAPeerThatDoesNotRead(t *testing.T) {
	a := transporttest.NewAuthority(t)
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			target := l.Addr().String()
			opts := []anser.DialOption{anser.Conns(1), anser.Timeout(patience), anser.WriteStall(patience), anser.Keepalive(patience, patience)}
			if secure {
				opts = append(opts, anser.TLS(&tls.Config{RootCAs: a.Pool}))
			}
			c := dial(t, target, opts...)
			ready := make(chan *wirepeer.Peer, 1)
			go func() {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				if secure {
					nc = tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1")}})
				}
				p := wirepeer.New(nc)
				p.Handshake()
				f, _ := p.NextOf(wire.TypeRequest)
				p.Send(wirepeer.Reply(f.ID, nil))
				ready <- p
			}()
			if _, err := call(context.Background(), c, "Echo.Say", "connect"); err != nil {
				t.Fatal(err)
			}
			p := <-ready
			defer p.Close()
			var wg sync.WaitGroup
			for i := range 24 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
					defer cancel()
					began := time.Now()
					_, err := call(ctx, c, "Echo.Say", strings.Repeat(string(rune('a'+i)), 1<<20))
					if e := fault(t, err); e.Code != anser.DeadlineExceeded {
						t.Error(err)
					}
					if d := time.Since(began); d > time.Minute { // the write that it would wait for ends much later
						t.Errorf("a call of 300 ms ended after %v", d)
					}
				})
			}
			wg.Wait()
			last := apart(context.Background(), c, "Echo.Say", text("last"))
			for {
				f, err := p.NextOf(wire.TypeRequest)
				if err != nil {
					t.Fatal(err)
				}
				var r wire.Request
				if err := wire.ParseRequest(f.Flags, f.Body, &r); err != nil {
					t.Fatal(err)
				}
				if string(r.Payload) == "last" {
					p.Send(wirepeer.Reply(f.ID, []byte("ok")))
					break
				}
				if n := len(r.Payload); n != 1<<20 || strings.Trim(string(r.Payload), string(r.Payload[:1])) != "" {
					t.Fatalf("a request of %d bytes is mixed up", n)
				}
			}
			if out, err := last.Wait(); err != nil || string(*out) != "ok" {
				t.Fatal(err)
			}
		})
	}
}

// A call that waits because the connection accepts no more bytes waits no longer than its
// deadline, whether the deadline is set by the call or by the context, and the server receives the
// time that is left.
func TestTimeoutWhileTheBufferIsFull(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c, conn, peers := stalled(t, network)
		first := apart(context.Background(), c, "Echo.Say", text(""), anser.Timeout(time.Minute))
		p := <-peers
		conn.Stall()
		var large []*result
		for range 7 { // one is being written, six are waiting
			large = append(large, apart(context.Background(), c, "Echo.Say", text(strings.Repeat("x", 200<<10)), anser.Timeout(time.Minute)))
			synctest.Wait()
		}
		began := time.Now()
		_, err := call(context.Background(), c, "Echo.Say", "late", anser.Timeout(time.Second))
		if e := wantFault(t, err, anser.DeadlineExceeded, anser.NotSent); e.Phase != anser.PhaseWrite {
			t.Error(err)
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("a call of 1 s ended after %v", d)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 9*time.Second)
		defer cancel()
		for _, ctx := range []context.Context{context.Background(), ctx} {
			large = append(large, apart(ctx, c, "Echo.Say", text("in time"), anser.Timeout(9*time.Second)))
		}
		time.Sleep(5 * time.Second)
		conn.Resume()
		for range len(large) {
			f, err := p.NextOf(wire.TypeRequest)
			if err != nil {
				t.Fatal(err)
			}
			var r wire.Request
			wire.ParseRequest(f.Flags, f.Body, &r)
			if left := time.Duration(r.Timeout) * time.Microsecond; string(r.Payload) == "in time" && left != 4*time.Second {
				t.Errorf("the server is told of %v, the caller has 4 s", left)
			}
			p.Send(wirepeer.Reply(f.ID, nil))
		}
		p.Send(wirepeer.Reply(2, nil))
		for _, f := range append(large, first) {
			if _, err := f.Wait(); err != nil {
				t.Error(err)
			}
		}
	})
}

// The reader goroutine never waits for a write: otherwise both sides could wait for each other.
func TestRepliesArriveWhileWritesStall(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c, conn, peers := stalled(t, network)
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("a"))
		p := <-peers
		conn.Stall()
		began := time.Now()
		p.Send(wire.AppendPing(nil, wire.TypePing, 7), wire.AppendDrain(nil, 0, 1000), wirepeer.Reply(2, []byte("late")))
		if out, err := reply.Wait(); err != nil || string(*out) != "late" {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("the reply took %v", d)
		}
		conn.Resume()
		for _, want := range []wire.Type{wire.TypePong, wire.TypeDrain} {
			if f, err := p.Next(); f.Type != want || err != nil {
				t.Fatalf("%s, %v; want %s", f.Type, err, want)
			}
		}
	})
}

// A server cannot make its client answer pings without limit.
func TestPingFloodFromAServer(t *testing.T) {
	for _, kind := range []wire.Type{wire.TypePing, wire.TypePong} {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			closed := make(chan wire.Reason, 1)
			rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
				p.NextOf(wire.TypeRequest)
				for i := range 3 { // a few may arrive close together
					p.Send(wire.AppendPing(nil, kind, uint64(i)))
				}
				p.Send(wirepeer.Fault(1, wire.ErrorBody{Code: wire.NotFound, Outcome: wire.Executed}))
				for i := range 5 {
					p.Send(wire.AppendPing(nil, kind, uint64(i)))
				}
				reason, _, _ := p.ReadClose()
				closed <- reason
			})
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
			_, err := call(context.Background(), c, "Echo.Say", "")
			wantFault(t, err, anser.NotFound, anser.Executed)
			if reason := <-closed; reason != wire.Flood {
				t.Errorf("%s: closed with %s", kind, reason)
			}
		})
	}
}

// Pings keep an otherwise unused connection open, on both sides, and are not a flood however often
// a side sends them.
func TestKeepaliveIsNotAFlood(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		eager := anser.Keepalive(time.Second, time.Second)
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, eager)
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), eager)
		if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if st := s.Stats(); st.Conns != 1 || st.Accepted != 1 {
			t.Errorf("%d connections, %d were made, want 1: %v", st.Conns, st.Accepted, st.Closed)
		}
	})
}

// The same from a server: the call fails, late frames are ignored, and frames for unknown streams
// are a flood.
func TestStreamFramesFromAServer(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		closed := make(chan wire.Reason, 1)
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			end := func(id uint64) []byte { return wire.AppendEnd(nil, id, nil) }
			f, _ := p.NextOf(wire.TypeRequest)
			p.Send(end(f.ID))
			p.NextOf(wire.TypeRequest)
			for range 200 {
				p.Send(end(f.ID)) // late
			}
			p.Send(wirepeer.Reply(f.ID+1, []byte("ok")))
			for range 101 {
				p.Send(end(1000))
			}
			reason, _, _ := p.ReadClose()
			closed <- reason
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		_, err := call(context.Background(), c, "Echo.Say", "")
		wantFault(t, err, anser.Internal, anser.OutcomeUnknown)
		if out, err := call(context.Background(), c, "Echo.Say", ""); out != "ok" || err != nil {
			t.Fatal(out, err)
		}
		if reason := <-closed; reason != wire.Flood {
			t.Error(reason)
		}
	})
}

// An ACK that answers nothing has no effect: the client continues to use the connection.
func TestAckFromAServer(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var conns atomic.Int32
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			conns.Add(1)
			for {
				f, err := p.Next()
				switch {
				case err != nil:
					return
				case f.Type == wire.TypeDrain:
					t.Error("the client answered an ACK")
				case f.Type == wire.TypeRequest:
					p.Send(wire.AppendDrain(nil, wire.FlagAck, 0), wirepeer.Reply(f.ID, nil))
				}
			}
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		for range 3 {
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := conns.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// An answer to a call that was never made ends the connection.
func TestAnswerToNoCall(t *testing.T) {
	for id, want := range map[uint64]wire.Reason{2: wire.BadID, 1<<63 - 1: wire.BadID, 1 << 63: wire.BadFrame, 1<<63 + 1: wire.BadFrame} {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			closed := make(chan wire.Reason, 1)
			rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
				f, _ := p.NextOf(wire.TypeRequest)
				p.Send(wirepeer.Reply(id, nil), wirepeer.Reply(f.ID, []byte("ok")))
				reason, _, _ := p.ReadClose()
				closed <- reason
			})
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
			if out, err := call(context.Background(), c, "Echo.Say", ""); out != "ok" || err != nil {
				t.Error(out, err) // valid frames in the same read count
			}
			if reason := <-closed; reason != want {
				t.Errorf("id %d: %s, want %s", id, reason, want)
			}
		})
	}
}

// The client's MaxMessage bounds the reply, to the byte.
func TestReplyOverTheLimit(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{
		"Blob.Get": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			n, err := strconv.Atoi(string(*in))
			out := make([]byte, n)
			return &out, err
		},
	}, anser.MaxMessage(16<<20))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.MaxMessage(1000))
	for n, ok := range map[int]bool{999: true, 1000: true, 1001: false, 60_000: false, 70_000: false, 8 << 20: false} {
		out, err := call(context.Background(), c, "Blob.Get", strconv.Itoa(n))
		if ok {
			if len(out) != n || err != nil {
				t.Errorf("%d bytes: %d, %v", n, len(out), err)
			}
			continue
		}
		e := wantFault(t, err, anser.ResourceExhausted, anser.Executed)
		if !strings.Contains(e.Message, "anser.MaxMessage") || !strings.Contains(e.Message, "client") {
			t.Errorf("%d bytes: %s", n, e.Message)
		}
	}
}
