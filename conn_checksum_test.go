package anser_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

// tap is a network to a server that records everything.
type tap struct {
	net.Listener
	mu   sync.Mutex
	said [][2]*bytes.Buffer // per connection, sent by the client and by the server
	wg   sync.WaitGroup
}

func newTap(t testing.TB, to string) *tap {
	x := &tap{Listener: listen(t)}
	x.wg.Go(func() {
		for {
			near, err := x.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			said := [2]*bytes.Buffer{new(bytes.Buffer), new(bytes.Buffer)}
			x.mu.Lock()
			x.said = append(x.said, said)
			x.mu.Unlock()
			for i, ends := range [][2]net.Conn{{near, far}, {far, near}} {
				x.wg.Go(func() {
					io.Copy(ends[1], io.TeeReader(ends[0], said[i]))
					ends[1].(*net.TCPConn).CloseWrite()
				})
			}
		}
	})
	return x
}

// check ends the tap, whose connections have ended, and returns how often each type of frame
// passed after the handshakes. It fails the test unless all of them, or none, have good
// checksums.
func (x *tap) check(t *testing.T, sealed bool) (seen map[wire.Type]int) {
	t.Helper()
	x.Close()
	x.wg.Wait()
	seen = make(map[wire.Type]int)
	for _, said := range x.said {
		for side, b := range said {
			rest := b.Bytes()[min(b.Len(), wire.PrefaceSize):]
			for n := 0; len(rest) >= wire.HeaderSize; n++ {
				end := wire.HeaderSize + int(binary.LittleEndian.Uint32(rest))
				if end > len(rest) {
					t.Fatalf("a frame of %d bytes where there are %d", end, len(rest))
				}
				frame := rest[:end]
				rest = rest[end:]
				typ := wire.Type(frame[4])
				if typ == wire.TypeSettings || typ == wire.TypeAuth && n == 1 {
					if frame[5] != 0 {
						t.Errorf("%s of side %d has flags", typ, side)
					}
					continue
				}
				seen[typ]++
				if !sealed {
					if _, err := wire.ParseHeader(frame); err != nil {
						t.Errorf("%v", err)
					}
				} else if _, err := wire.ParseHeaderWith(frame, wire.FlagCRC); err != nil {
					t.Errorf("side %d: %v", side, err)
				} else if _, err := wire.CheckChecksum(frame, frame[wire.HeaderSize:]); err != nil {
					t.Errorf("side %d: %s: %v", side, typ, err)
				}
			}
		}
	}
	return seen
}

// The option on one side is enough for all frames of both to have checksums, and nothing else
// changes.
func TestChecksums(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 4 s")
	}
	for name, row := range map[string]struct{ server, client bool }{
		"server": {server: true}, "client": {client: true}, "both": {true, true}, "none": {},
	} {
		for _, demands := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, authentication %t", name, demands), func(t *testing.T) {
				sealed := row.server || row.client
				l := listen(t)
				x := newTap(t, l.Addr().String())
				var heard sync.Map // bool, of the sides
				observe := anser.Observe(anser.Observer{ConnOpened: func(c anser.ConnInfo) error {
					if c.Peer.Checksums != sealed {
						t.Errorf("the observer is told of checksums: %t", c.Peer.Checksums)
					}
					heard.Store(c.Server, true)
					return nil
				}})
				opts := []anser.ServerOption{silent, observe, anser.FlowControlWindows(32<<10, 64<<10)}
				if row.server {
					opts = append(opts, anser.Checksums())
				}
				if demands {
					opts = append(opts, anser.Authenticate(new(door)))
				}
				s := anser.NewServer(opts...)
				anser.Handle(s, "Echo.Say", echo)
				anser.Handle(s, "Echo.Apart", echo, anser.Concurrent())
				anser.Handle(s, "Echo.Ask", askBack)
				anser.Handle(s, "Echo.Peer", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
					p, _ := anser.PeerFrom(ctx)
					return text(fmt.Sprint(p.Checksums)), nil
				})
				var waits [8]chan struct{} // closed when a handler waits
				for i := range waits {
					waits[i] = make(chan struct{})
				}
				anser.Handle(s, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
					close(waits[(*in)[0]])
					<-ctx.Done()
					return nil, ctx.Err()
				})
				anser.HandleStream(s, "Echo.Talk", talk)
				run(t, s, l)
				h := anser.NewServer(silent)
				shout.Handle(h, func(ctx context.Context, in *[]byte) (*[]byte, error) {
					if p, _ := anser.PeerFrom(ctx); p.Checksums != sealed {
						t.Errorf("a client with handlers has a peer with checksums: %t", p.Checksums)
					}
					return text(strings.ToUpper(string(*in))), nil
				})
				dials := []anser.DialOption{silent, anser.NoSnapshot(), observe, anser.Handlers(h), showing("ann"), anser.InsecureCredentials(), anser.FlowControlWindows(32<<10, 64<<10), anser.Timeout(patience)}
				if row.client {
					dials = append(dials, anser.Checksums())
				}
				c, err := anser.Dial(x.Addr().String(), dials...)
				if err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				for i := range waits {
					wg.Go(func() {
						for j := range 30 {
							in := strings.Repeat(fmt.Sprint(i, j, " "), j*j*10)
							method := []string{"Echo.Say", "Echo.Apart"}[j%2]
							if out, err := call(context.Background(), c, method, in); out != in || err != nil {
								t.Errorf("%s: %d bytes, %v; want %d", method, len(out), err, len(in))
								return
							}
						}
						large := 64 << 10
						if i == 0 {
							large = 3 << 20
						}
						in := strings.Repeat("x", large)
						if out, err := call(context.Background(), c, "Echo.Say", in); out != in || err != nil {
							t.Errorf("%d bytes, %v", len(out), err)
						}
						if out, err := call(context.Background(), c, "Echo.Ask", "hello"); out != "HELLO from 1" || err != nil {
							t.Errorf("%q, %v", out, err)
						}
						_, err := call(context.Background(), c, "Echo.None", "")
						wantFault(t, err, anser.Unimplemented, anser.Refused)
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						waiting := apart(ctx, c, "Echo.Wait", &[]byte{byte(i)})
						<-waits[i] // one that was not sent has no CANCEL
						cancel()
						if _, err := waiting.Wait(); err == nil {
							t.Error("it waited for nothing")
						}
					})
				}
				wg.Go(func() { talkMuch(t, c) })
				wg.Wait()
				if out, err := call(context.Background(), c, "Echo.Peer", ""); out != fmt.Sprint(sealed) || err != nil {
					t.Errorf("PeerFrom: checksums %s, %v", out, err)
				}
				if n := c.Unread() + s.Unread(); n != 0 {
					t.Errorf("%d bytes of credit are left", n)
				}
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if err := s.Shutdown(ctx); err != nil {
					t.Error(err)
				}
				c.Close()
				h.Close()
				seen := x.check(t, sealed)
				for _, typ := range []wire.Type{
					wire.TypeMethod, wire.TypeRequest, wire.TypeReply, wire.TypeError, wire.TypeCancel, wire.TypeDrain,
					wire.TypeClose, wire.TypeData, wire.TypeEnd, wire.TypeWindow,
				} {
					if seen[typ] == 0 {
						t.Errorf("no %s came by", typ)
					}
				}
				if _, ok := heard.Load(true); !ok {
					t.Error("no observer of the server was asked")
				}
			})
		}
	}
}

// talkMuch sends enough messages in both directions, in small windows, for credit to run out if
// either side counts it wrong.
func talkMuch(t *testing.T, c *anser.Client) {
	st := open(t, context.Background(), c, "Echo.Talk")
	var wg sync.WaitGroup
	const small, large = 20_000, 5
	wg.Go(func() {
		for i := range small + large {
			msg := make([]byte, i%7)
			if i >= small {
				msg = make([]byte, 1<<20)
			}
			if err := st.Send(&msg); err != nil {
				t.Error(err)
				return
			}
		}
		st.CloseSend()
	})
	n := 0
	for msg, err := range st.All() {
		if err != nil {
			t.Error(err)
			break
		}
		if want := n % 7; len(*msg) != want && n < small || n >= small && len(*msg) != 1<<20 {
			t.Errorf("message %d has %d bytes", n, len(*msg))
		}
		n++
	}
	wg.Wait()
	if n != small+large {
		t.Errorf("%d messages came back", n)
	}
}

// The option also works over TLS.
func TestChecksumsOverTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Say": echo}, anser.Checksums(), anser.TLS(a.Server(t, false)))
	c := dial(t, l.Addr().String(), anser.TLS(a.Client(t)))
	in := strings.Repeat("hello ", 100_000)
	if out, err := call(context.Background(), c, "Echo.Say", in); out != in || err != nil {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

// A side that demands checksums closes a connection to a peer that does not know them, and says
// why.
func TestChecksumsThatAreNotOffered(t *testing.T) {
	t.Run("by the server", func(t *testing.T) {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
				if f, err := p.Next(); err == nil {
					t.Errorf("the client went on with %s", f.Type)
				}
			})
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Checksums())
			_, err := call(context.Background(), c, "Echo.Say", "hello", anser.WithFailMode(anser.Failfast))
			e := wantFault(t, err, anser.Unavailable, anser.NotSent)
			if want := "the server does not offer checksums of frames, which this client demands (anser.Checksums)"; !strings.Contains(e.Message, want) {
				t.Errorf("%q does not say %q", e.Message, want)
			}
		})
	})
	t.Run("by the client", func(t *testing.T) {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.Checksums())
			nc, err := network.Dial(context.Background(), "tcp", "a:1")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			p := wirepeer.New(nc)
			p.Send(wirepeer.Hello(wire.DefaultSettings()), wire.AppendMethod(nil, 1, "Echo.Say"), wirepeer.Request(1, 1, nil))
			if err := p.ReadPreface(); err != nil {
				t.Fatal(err)
			}
			reason, said, err := p.ReadClose()
			if want := "the client does not offer checksums of frames, which this server demands (anser.Checksums)"; reason != wire.BadChecksum || !strings.Contains(said, want) || err != nil {
				t.Errorf("%s, %q, %v", reason, said, err)
			}
			nc.Close()
			synctest.Wait()
			if st := s.Stats(); st.Methods["Echo.Say"].Calls != 0 || st.Closed["BAD_CHECKSUM"] != 1 || st.HandshakeFailed != 1 {
				t.Errorf("%+v", st)
			}
		})
	})
}

// Frames without a checksum, or with a wrong one, are not accepted, whatever their type.
func TestFramesWithoutGoodChecksums(t *testing.T) {
	request := wirepeer.Request(1, 1, []byte("hello"))
	wrong := wirepeer.Seal(request)
	wrong[len(wrong)-1] ^= 1
	lost := wirepeer.Seal(request)
	lost[5] ^= byte(wire.FlagCRC)
	ignored := wirepeer.Seal(request)
	ignored[4] ^= byte(wire.FirstSkippable)
	short := wire.AppendHeader(nil, wire.Header{Length: 3, Type: wire.TypeRequest, Flags: wire.FlagCRC, ID: 1})
	wire.PutHeaderCheck(short)
	longer := wirepeer.Seal(request)
	longer[1] ^= 0x80 // 32 KiB, of which little is there
	unproven := wirepeer.Seal(request)
	unproven[6] ^= 1
	for name, row := range map[string]struct {
		frame  []byte
		reason wire.Reason
	}{
		"wrong":                     {wrong, wire.BadChecksum},
		"none":                      {request, wire.BadChecksum},
		"flag lost":                 {lost, wire.BadChecksum},
		"type of ignored frames":    {ignored, wire.BadChecksum},
		"ignored, without":          {wire.AppendHeader(nil, wire.Header{Type: 0xFE}), wire.BadChecksum},
		"shorter than the checksum": {append(short, 1, 2, 3), wire.BadFrame},
		"ping without":              {wire.AppendPing(nil, wire.TypePing, 1), wire.BadChecksum},
		"length":                    {longer, wire.BadChecksum},
		"length, header only":       {longer[:wire.HeaderSize], wire.BadChecksum},
		"check of the header":       {unproven, wire.BadChecksum},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
				nc, err := network.Dial(context.Background(), "tcp", "a:1")
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				p := wirepeer.New(nc)
				if _, err := p.SealedHandshake(); err != nil {
					t.Fatal(err)
				}
				p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), append(wire.AppendHeader(nil, wire.Header{Length: 1, Type: 0xFE, ID: 3}), 1))
				began := time.Now()
				p.Write(row.frame)
				if reason, said, err := p.ReadClose(); reason != row.reason || err != nil {
					t.Errorf("%s, %q, %v; want %s", reason, said, err, row.reason)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("it took %v: the server waited for more bytes", took)
				}
				if n := s.Stats().Methods["Echo.Say"].Calls; n != 0 {
					t.Error("it ran")
				}
			})
		})
	}
}

// A request for which memory is short is refused only after its checksum has proven that it is a
// request.
func TestChecksumOfWhatIsTurnedAway(t *testing.T) {
	const message = 1 << 20
	l := listen(t)
	release := make(chan struct{})
	s := anser.NewServer(silent, anser.MaxMessage(message), anser.MaxMemory(4*message))
	anser.Handle(s, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		<-release
		return text(""), nil
	}, anser.Concurrent())
	run(t, s, l)
	defer close(release)
	connect := func() *wirepeer.Peer {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		nc.SetDeadline(time.Now().Add(30 * time.Second))
		p := wirepeer.New(nc)
		if _, err := p.SealedHandshake(); err != nil {
			t.Fatal(err)
		}
		p.Send(wire.AppendMethod(nil, 1, "Echo.Wait"))
		return p
	}
	const held, calls = 4<<20 - 300_000, 70
	holder := connect()
	for id := range uint64(calls) {
		holder.Send(wirepeer.Request(id+1, 1, make([]byte, held/calls)))
	}
	eventually(t, "they are held", func() bool { return s.Stats().Memory == held/calls*calls })
	p := connect()
	large := wirepeer.Request(1000, 1, make([]byte, message-1))
	p.Send(large)
	f, err := p.Next()
	if f.Type != wire.TypeError || f.ID != 1000 || err != nil {
		t.Fatal(f.Type, f.ID, err)
	}
	if e, err := wire.ParseError(f.Flags, f.Body); e.Code != wire.ResourceExhausted || anser.Outcome(e.Outcome) != anser.Refused || err != nil {
		t.Errorf("%+v, %v", e, err)
	}
	binary.LittleEndian.PutUint64(large[8:], 1001)
	sealed := wirepeer.Seal(large)
	sealed[9] ^= 4 // another call, it seems
	p.Write(sealed)
	if reason, said, err := p.ReadClose(); reason != wire.BadChecksum || err != nil {
		t.Errorf("%s, %q, %v", reason, said, err)
	}
	if st := s.Stats(); st.LimitsHit["MaxMemory"] != 1 || st.Refused != 1 {
		t.Errorf("%+v", st)
	}
}

// A frame may be as long as without a checksum.
func TestLongestFrameWithChecksum(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.MaxMessage(100_000))
		nc, err := network.Dial(context.Background(), "tcp", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		p := wirepeer.New(nc)
		settings, err := p.SealedHandshake()
		if err != nil {
			t.Fatal(err)
		}
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
		size := int(settings.MaxFrame) - wire.RequestSize
		p.Send(wirepeer.Request(1, 1, make([]byte, size)))
		if f, err := p.Next(); f.Type != wire.TypeError || f.ID != 1 || err != nil { // the message is over its limit
			t.Fatal(f, err)
		}
		p.Send(wirepeer.Request(2, 1, make([]byte, size+1)))
		if reason, said, err := p.ReadClose(); reason != wire.FrameTooLarge || err != nil {
			t.Errorf("%s, %q, %v", reason, said, err)
		}
	})
}

// Clients of a process share a connection only if both or neither want checksums.
func TestChecksumsKeepConnectionsApart(t *testing.T) {
	l := listen(t)
	s := serve(t, l, map[string]handler{"Echo.Say": func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		p, _ := anser.PeerFrom(ctx)
		return text(fmt.Sprint(p.Checksums)), nil
	}})
	with, without := dial(t, l.Addr().String(), anser.Checksums(), anser.Conns(1)), dial(t, l.Addr().String(), anser.Conns(1))
	for c, want := range map[*anser.Client]string{with: "true", without: "false"} {
		if out, err := call(context.Background(), c, "Echo.Say", ""); out != want || err != nil {
			t.Errorf("%s, %v; want %s", out, err, want)
		}
	}
	if n := s.Stats().Conns; n != 2 {
		t.Errorf("%d connections", n)
	}
}

// Checksums cost a unary call no additional allocation.
func TestAllocationsWithChecksums(t *testing.T) {
	perCall := func(opts ...anser.DialOption) float64 {
		network := new(ansertest.Network)
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", append(opts, anser.Dialer(network.Dial), anser.Conns(1))...)
		in, out := make([]byte, 100), []byte(nil)
		return allocs(t, func() {
			if err := c.Call(context.Background(), "Echo.Say", &in, &out); err != nil {
				t.Fatal(err)
			}
		})
	}
	without, with := perCall(), perCall(anser.Checksums())
	if raced {
		with -= 2 // what the pool of the sealers forgets, on either side
	}
	if with > without+0.5 {
		t.Errorf("%v allocations, without checksums %v", with, without)
	}
}
