package anser_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

// lentFrom is the size from which on messages of the raw codec are not copied.
const lentFrom = 512 << 10

// pattern returns n bytes that no other seed has.
func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// Large messages of bytes arrive as they were sent, in both directions, with other calls next to
// them and on every kind of connection. No message shares memory with another one.
func TestLargeRawMessages(t *testing.T) {
	authority := transporttest.NewAuthority(t)
	certificate := serverTLS(t, authority, "127.0.0.1")
	kinds := map[string]struct {
		server []anser.ServerOption
		client []anser.DialOption
		handle []anser.HandleOption
		memory bool // no sockets
	}{
		"sockets":    {},
		"inline":     {handle: []anser.HandleOption{anser.Inline()}},
		"concurrent": {handle: []anser.HandleOption{anser.Concurrent()}},
		"once":       {handle: []anser.HandleOption{anser.Deduplicate()}},
		"checksums":  {client: []anser.DialOption{anser.Checksums()}},
		"TLS":        {server: []anser.ServerOption{certificate}, client: []anser.DialOption{anser.TLS(&tls.Config{RootCAs: authority.Pool})}},
		"memory":     {memory: true},
	}
	sizes := []int{lentFrom - 1, lentFrom, lentFrom + 1, lentFrom + 16<<10, 1 << 20, 1<<20 + 16<<10 + 1, 3_333_333, 17 << 20}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l, o := listen(t), []anser.DialOption{anser.Conns(1), anser.MaxMessage(20 << 20)}
			if kind.memory {
				network := new(ansertest.Network)
				l = network.Listen("a:1")
				o = append(o, anser.Dialer(network.Dial))
			}
			s := anser.NewServer(append(kind.server, silent, anser.MaxMessage(20<<20))...)
			var kept sync.Map
			if err := anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) {
				if len(*in) < 2<<20 {
					kept.Store(in, bytes.Clone(*in))
				}
				return in, nil
			}, kind.handle...); err != nil {
				t.Fatal(err)
			}
			run(t, s, l)
			c := dial(t, l.Addr().String(), append(o, kind.client...)...)
			var callers sync.WaitGroup
			for i := range 3 {
				callers.Go(func() {
					var before, want []byte
					for j, size := range sizes {
						in := pattern(size, uint64(i*100+j))
						var opts []anser.CallOption
						if name == "once" {
							opts = append(opts, anser.IdempotencyKey(fmt.Sprintf("%d-%d", i, j)))
						}
						out, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", &in, append(opts, anser.Timeout(0))...)
						if err != nil || !bytes.Equal(*out, in) {
							t.Errorf("%d bytes: %v, the same: %v", size, err, out != nil && bytes.Equal(*out, in))
							return
						}
						clear(in) // the caller's again
						if !bytes.Equal(before, want) {
							t.Errorf("the reply before that of %d bytes was overwritten", size)
						}
						before, want = *out, bytes.Clone(*out)
					}
				})
			}
			callers.Go(func() {
				for i := range 200 {
					in := fmt.Sprintf("small-%d", i)
					opts := []anser.CallOption{}
					if name == "once" {
						opts = append(opts, anser.IdempotencyKey(in))
					}
					if out, err := call(context.Background(), c, "Echo.Say", in, append(opts, anser.Timeout(0))...); out != in || err != nil {
						t.Error(out, err)
					}
				}
			})
			callers.Wait()
			kept.Range(func(in, want any) bool {
				if !bytes.Equal(*in.(*[]byte), want.([]byte)) {
					t.Errorf("a request of %d bytes was overwritten after its call", len(want.([]byte)))
				}
				return true
			})
			eventually(t, "nothing is held", func() bool { return s.Stats().Memory == 0 })
		})
	}
}

// A caller's memory is used for the reply if it is large enough, as with small messages.
func TestLargeReplyIntoMemoryOfTheCaller(t *testing.T) {
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Say": echo})
	c := dial(t, l.Addr().String())
	in := pattern(1<<20, 1)
	for _, room := range []int{0, 1, len(in) - 1, len(in), len(in) + 1} {
		out := make([]byte, 0, room)
		before := out[:min(1, room)]
		if err := c.Call(context.Background(), "Echo.Say", &in, &out); err != nil || !bytes.Equal(out, in) {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
		if same := len(before) > 0 && &out[0] == &before[0]; same != (room >= len(in)) {
			t.Errorf("room for %d bytes, a reply of %d: the same memory: %v", room, len(in), same)
		}
	}
}

// slowPeer serves on a listener, and reads what follows the handshake only when it is told to.
func slowPeer(t *testing.T, l net.Listener, f func(p *wirepeer.Peer)) {
	t.Helper()
	var peers sync.WaitGroup
	peers.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			if tc, ok := nc.(*net.TCPConn); ok {
				tc.SetReadBuffer(64 << 10)
			}
			peers.Go(func() {
				defer nc.Close()
				p := wirepeer.New(nc)
				own := wire.DefaultSettings()
				own.Life, own.MaxFrame, own.Features = 1, 128<<20, wire.FeatureCRC
				if p.Send(wirepeer.Hello(own)) != nil {
					return
				}
				if s, err := p.ReadHello(); err == nil {
					p.Sealed = s.Features&wire.FeatureCRCWanted != 0
					f(p)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		peers.Wait()
	})
}

// A second large call waits for the first one within its own time, and a small one is sent after
// both.
func TestLargeCallWaitsForItsTurn(t *testing.T) {
	l := listen(t)
	read := make(chan struct{})
	resume := sync.OnceFunc(func() { close(read) })
	defer resume()
	slowPeer(t, l, func(p *wirepeer.Peer) {
		<-read
		for {
			f, err := p.NextOf(wire.TypeRequest)
			if err != nil {
				return
			}
			var r wire.Request
			wire.ParseRequest(f.Flags, f.Body, &r)
			p.Send(wirepeer.Reply(f.ID, []byte(fmt.Sprint(len(r.Payload), r.Payload[0], r.Payload[len(r.Payload)-1]))))
		}
	})
	c := dial(t, l.Addr().String(), anser.Conns(1), anser.MaxMessage(128<<20), anser.Dialer(oneConn()))
	var calls sync.WaitGroup
	in := bytes.Repeat([]byte{1}, 12<<20)
	calls.Go(func() {
		out, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", &in, anser.Timeout(0))
		if err != nil || string(*out) != fmt.Sprint(12<<20, 1, 1) {
			t.Error(err)
		}
	})
	eventually(t, "it is being written", func() bool { return c.Lending() })
	later := bytes.Repeat([]byte{2}, 1<<20)
	_, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", &later, anser.Timeout(50*time.Millisecond))
	wantFault(t, err, anser.DeadlineExceeded, anser.NotSent)
	ctx, cancel := context.WithCancel(context.Background())
	cancelled := make(chan error, 1)
	go func() {
		_, err := anser.Call[[]byte](ctx, c, "Echo.Say", &later, anser.Timeout(0))
		cancelled <- err
	}()
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	calls.Go(func() {
		out, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", &later, anser.Timeout(0))
		if err != nil || string(*out) != fmt.Sprint(1<<20, 2, 2) {
			t.Error(err)
		}
	})
	calls.Go(func() {
		if out, err := call(context.Background(), c, "Echo.Say", "\x03", anser.Timeout(0)); out != fmt.Sprint(1, 3, 3) || err != nil {
			t.Error(out, err)
		}
	})
	resume()
	calls.Wait()
}

// oneConn returns a dialer that makes a single connection.
func oneConn() func(ctx context.Context, network, address string) (net.Conn, error) {
	var made atomic.Bool
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if made.Swap(true) {
			return nil, errors.New("there is one already")
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// A large call whose connection breaks while its request is written fails, or is made again with
// the whole message.
func TestConnectionBreaksInALargeRequest(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		t.Run(fmt.Sprint("idempotent=", idempotent), func(t *testing.T) {
			l := listen(t)
			var conns atomic.Int32
			slowPeer(t, l, func(p *wirepeer.Peer) {
				if conns.Add(1) == 1 {
					p.Conn.Read(make([]byte, 100_000)) // and closes
					return
				}
				f, err := p.NextOf(wire.TypeRequest)
				if err != nil {
					return
				}
				var r wire.Request
				wire.ParseRequest(f.Flags, f.Body, &r)
				p.Send(wirepeer.Reply(f.ID, []byte(fmt.Sprint(bytes.Count(r.Payload, []byte("a"))))))
				p.Next()
			})
			opts := []anser.CallOption{anser.Attempts(3)}
			if idempotent {
				opts = append(opts, anser.Idempotent())
			}
			c := dial(t, l.Addr().String(), anser.Conns(1), anser.MaxMessage(128<<20))
			in := bytes.Repeat([]byte("a"), 12<<20)
			out, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", &in, append(opts, anser.Timeout(0))...)
			for i := range in {
				in[i] = 'b'
			}
			if !idempotent {
				wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
				return
			}
			if err != nil || string(*out) != fmt.Sprint(len(in)) {
				t.Fatal(err)
			}
		})
	}
}

// A server that refuses a large request before it has arrived gets the rest of the old message.
func TestLargeRequestThatIsRefusedEarly(t *testing.T) {
	l := listen(t)
	release := make(chan struct{})
	s := serve(t, l, map[string]handler{
		"Echo.Say":  echo,
		"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) { <-release; return text(""), nil },
	}, anser.MaxMessage(2<<20), anser.MaxMemory(8<<20))
	c := dial(t, l.Addr().String(), anser.Conns(1), anser.MaxMessage(2<<20))
	var held sync.WaitGroup
	for i, size := range []int{2 << 20, 2 << 20, 1 << 20, 1 << 20} {
		held.Go(func() {
			in := make([]byte, size)
			if _, err := anser.Call[[]byte](context.Background(), c, "Echo.Wait", &in, anser.Timeout(0)); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "it is held", func() bool { return s.Stats().InFlight == int64(i+1) })
	}
	if held := s.Stats().Memory; held != 6<<20 {
		t.Fatalf("%d bytes are held", held)
	}
	for range 5 {
		in := make([]byte, 2<<20)
		_, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", &in, anser.Attempts(1), anser.Timeout(0))
		wantFault(t, err, anser.ResourceExhausted, anser.Refused)
		for i := range in {
			in[i] = 1 // the race detector sees a read by another goroutine
		}
	}
	if out, err := call(context.Background(), c, "Echo.Say", "hello", anser.Timeout(0)); out != "hello" || err != nil {
		t.Fatal(out, err)
	}
	close(release)
	held.Wait()
	eventually(t, "nothing is held", func() bool { return s.Stats().Memory == 0 })
}

// Large replies to a client that reads slowly arrive whole, with small ones next to them, and a
// connection that ends meanwhile leaves nothing behind.
func TestLargeRepliesToASlowClient(t *testing.T) {
	l := listen(t)
	large := pattern(3<<20, 7)
	s := serve(t, l, map[string]handler{
		"Echo.Say":   echo,
		"Echo.Large": func(context.Context, *[]byte) (*[]byte, error) { return &large, nil },
	}, anser.MaxMessage(16<<20))
	p := rawDial(t, l.Addr().String())
	p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Large"))
	const calls = 20
	for id := range uint64(calls) {
		p.Send(wirepeer.Request(id+1, uint32(1+id%2), []byte("small")))
	}
	for range calls {
		f, err := p.NextOf(wire.TypeReply, wire.TypeError)
		if err != nil {
			t.Fatal(err)
		}
		r, err := wire.ParseReply(f.Flags, f.Body)
		if f.Type != wire.TypeReply || err != nil {
			t.Fatal(f.Type, err)
		}
		want := []byte("small")
		if f.ID%2 == 0 {
			want = large
		}
		if !bytes.Equal(r.Payload, want) {
			t.Fatalf("the reply of the call %d has %d bytes, or others than were sent", f.ID, len(r.Payload))
		}
	}
	for id := range uint64(calls) {
		p.Send(wirepeer.Request(calls+id+1, 2, []byte("small")))
	}
	p.Conn.Read(make([]byte, 1000))
	p.Close()
	eventually(t, "nothing is held", func() bool { return s.Stats().Memory == 0 && s.Stats().InFlight == 0 })
}

// What observers of messages learn of large ones is the same as of small ones.
func TestObserversOfLargeMessages(t *testing.T) {
	l := listen(t)
	var seen sync.Map
	o := anser.Observer{
		Request: func(_ context.Context, m anser.MessageInfo) error {
			seen.Store(fmt.Sprintf("server=%v request", m.Server), m.Bytes)
			return nil
		},
		Reply: func(_ context.Context, m anser.MessageInfo) {
			seen.Store(fmt.Sprintf("server=%v reply", m.Server), m.Bytes)
		},
		CallEnded: func(_ context.Context, i *anser.CallInfo) {
			if i.Server {
				seen.Store("call", i.RequestBytes+i.ReplyBytes)
			}
		},
	}
	s := anser.NewServer(silent, anser.Observe(o))
	anser.Handle(s, "Echo.Say", echo)
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Observe(o))
	in := strings.Repeat("x", 1<<20)
	if out, err := call(context.Background(), c, "Echo.Say", in); out != in || err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{"server=false request": 1 << 20, "server=false reply": 1 << 20, "server=true request": 1 << 20, "server=true reply": 1 << 20, "call": 2 << 20} {
		eventually(t, what, func() bool { size, _ := seen.Load(what); return size == want })
	}
}

// A server and its clients call each other with large messages, on one connection.
func TestLargeRawMessagesInBothDirections(t *testing.T) {
	l := listen(t)
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Ask", askBack, anser.Concurrent())
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Handlers(handlers(t)), anser.Conns(1))
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for j := range 5 {
				in := strings.Repeat(string(rune('a'+i)), lentFrom+j*200_000)
				out, err := call(context.Background(), c, "Echo.Ask", in, anser.Timeout(0))
				if err != nil || out != strings.ToUpper(in)+" from 1" {
					t.Errorf("%d bytes for %d, %v", len(out), len(in), err)
				}
			}
		})
	}
	callers.Wait()
	eventually(t, "nothing is held", func() bool { return s.Stats().Memory == 0 })
}
