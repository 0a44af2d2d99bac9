package anser_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// partsBubble runs f in a bubble, with connections that hold 64 KiB.
func partsBubble(t *testing.T, f func(t *testing.T, network *ansertest.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, &ansertest.Network{Buffer: 64 << 10}) })
}

// takesParts are the settings of a side that takes frames in PARTs, or not.
func takesParts(takes, sealed bool) wire.Settings {
	s := wire.DefaultSettings()
	s.Life = 1
	if takes {
		s.Features |= wire.FeatureParts
	}
	if sealed {
		s.Features |= wire.FeatureCRC | wire.FeatureCRCWanted
	}
	return s
}

// partsPeer dials a server of the network, and completes the handshake.
func partsPeer(t *testing.T, n *ansertest.Network, takes, sealed bool) (*wirepeer.Peer, wire.Settings) {
	t.Helper()
	nc, err := n.Dial(context.Background(), "tcp", "a:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	p := wirepeer.New(nc)
	p.Send(wirepeer.Hello(takesParts(takes, sealed)))
	s, err := p.ReadHello()
	if err != nil {
		t.Fatal(err)
	}
	p.Sealed = sealed
	return p, s
}

// acceptPeer accepts one connection on l and completes the handshake.
func acceptPeer(t *testing.T, l net.Listener, takes, sealed bool) <-chan *wirepeer.Peer {
	t.Helper()
	accepted := make(chan *wirepeer.Peer, 1)
	go func() {
		nc, err := l.Accept()
		l.Close()
		if err != nil {
			t.Error(err)
			return
		}
		p := wirepeer.New(nc)
		if p.Send(wirepeer.Hello(takesParts(takes, sealed))) != nil {
			return
		}
		if _, err := p.ReadHello(); err != nil {
			t.Error(err)
		}
		p.Sealed = sealed
		accepted <- p
	}()
	return accepted
}

// join reads frames until one in PARTs of the id is complete, or has ended early, and returns it
// with the frames between its PARTs.
func join(p *wirepeer.Peer, id uint64) (frame []byte, early bool, between []wirepeer.Frame, err error) {
	for {
		f, err := p.Next()
		switch {
		case err != nil:
			return frame, false, between, err
		case f.Type != wire.TypePart:
			if len(frame) > 0 {
				between = append(between, f)
			}
			continue
		case f.ID != id:
			return frame, false, between, fmt.Errorf("PART with id %d, want %d", f.ID, id)
		case len(f.Body) == 0:
			return frame, true, between, nil
		}
		frame = append(frame, f.Body...)
		h, err := wire.ParseHeader(frame)
		if err != nil || len(frame) > wire.HeaderSize+int(h.Length) {
			return frame, false, between, fmt.Errorf("%d bytes of %+v, %w", len(frame), h, err)
		}
		if len(frame) == wire.HeaderSize+int(h.Length) {
			return frame, false, between, nil
		}
	}
}

// whole reads the frame with the id from its PARTs, with the frames between them, or otherwise the
// next frame, of the given types if there are any.
func whole(p *wirepeer.Peer, id uint64, parts bool, types ...wire.Type) (frame []byte, between []wirepeer.Frame, err error) {
	if parts {
		frame, _, between, err = join(p, id)
		return frame, between, err
	}
	next := p.Next
	if len(types) > 0 {
		next = func() (wirepeer.Frame, error) { return p.NextOf(types...) }
	}
	f, err := next()
	return append(wire.AppendHeader(nil, f.Header), f.Body...), nil, err
}

// A small call is written between two PARTs of a large request, if the server takes PARTs, and
// after it otherwise.
func TestSmallCallPassesALargeRequest(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		for _, takes := range []bool{false, true} {
			t.Run(fmt.Sprintf("checksums=%v/parts=%v", sealed, takes), func(t *testing.T) {
				partsBubble(t, func(t *testing.T, network *ansertest.Network) {
					accepted := acceptPeer(t, network.Listen("a:1"), takes, sealed)
					c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
					defer c.Close()
					in := pattern(2<<20, 1)
					large := apart(context.Background(), c, "Echo.Say", &in, anser.Timeout(0))
					p := <-accepted
					defer p.Close()
					synctest.Wait() // the connection is full
					small := apart(context.Background(), c, "Echo.Say", text("small"), anser.Timeout(0))
					synctest.Wait()
					frame, between, err := whole(p, 1, takes, wire.TypeRequest)
					if err != nil || !bytes.HasSuffix(frame, in) {
						t.Fatalf("%d bytes, %v", len(frame), err)
					}
					if passed := len(between) == 1 && between[0].ID == 2; passed != takes {
						t.Errorf("between the PARTs are %d frames", len(between))
					}
					p.Send(wirepeer.Reply(1, []byte("1")), wirepeer.Reply(2, []byte("2")))
					for i, r := range []*result{large, small} {
						if out, err := r.Wait(); err != nil || string(*out) != fmt.Sprint(i+1) {
							t.Error(err)
						}
					}
				})
			})
		}
	}
}

// The reply to a small call is written between two PARTs of a large reply, if the client takes
// PARTs, and after it otherwise.
func TestSmallReplyPassesALargeOne(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		for _, takes := range []bool{false, true} {
			t.Run(fmt.Sprintf("checksums=%v/parts=%v", sealed, takes), func(t *testing.T) {
				partsBubble(t, func(t *testing.T, network *ansertest.Network) {
					want := pattern(2<<20, 2)
					serve(t, network.Listen("a:1"), map[string]handler{
						"Echo.Say":   echo,
						"Echo.Large": func(context.Context, *[]byte) (*[]byte, error) { return &want, nil },
					})
					p, _ := partsPeer(t, network, takes, sealed)
					p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Large"), wirepeer.Request(1, 2, nil))
					synctest.Wait()
					p.Send(wirepeer.Request(2, 1, []byte("small")), wire.AppendPing(nil, wire.TypePing, 5))
					synctest.Wait()
					frame, between, err := whole(p, 1, takes)
					if err != nil || !bytes.HasSuffix(frame, want) {
						t.Fatalf("%d bytes, %v", len(frame), err)
					}
					if passed := len(between) == 2 && between[0].ID == 2 && between[1].Type == wire.TypePong; passed != takes {
						t.Errorf("between the PARTs are %d frames", len(between))
					}
					if !takes {
						if f, err := p.Next(); f.ID != 2 || err != nil {
							t.Error(f.Type, f.ID, err)
						}
					}
				})
			})
		}
	}
}

// A large call that ends while its request is being written returns at once, and the caller may
// change the message. The rest of it is not sent.
func TestEndOfACallWhoseRequestIsBeingWrittenInParts(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		for _, at := range []int{0, 1, 300_000, 2<<20 - 5000} { // bytes that the server has read before
			for _, deadline := range []bool{false, true} {
				t.Run(fmt.Sprintf("checksums=%v/at=%d/deadline=%v", sealed, at, deadline), func(t *testing.T) {
					partsBubble(t, func(t *testing.T, network *ansertest.Network) {
						accepted := acceptPeer(t, network.Listen("a:1"), true, sealed)
						c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
						defer c.Close()
						in := bytes.Repeat([]byte("a"), 2<<20)
						ctx, cancel := context.WithCancel(context.Background())
						if deadline {
							ctx, cancel = context.WithTimeout(ctx, time.Second)
						}
						defer cancel()
						large := apart(ctx, c, "Echo.Say", &in, anser.Timeout(0))
						p := <-accepted
						defer p.Close()
						synctest.Wait()
						if err := p.Fill(at); err != nil {
							t.Fatal(err)
						}
						synctest.Wait()
						if !deadline {
							cancel()
						}
						if _, err := large.Wait(); fault(t, err).Outcome != anser.OutcomeUnknown {
							t.Fatal(err)
						}
						for i := range in {
							in[i] = 'b'
						}
						frame, early, between, err := join(p, 1)
						if err != nil {
							t.Fatal(err)
						}
						if n := bytes.Count(frame, []byte("b")); n > 0 {
							t.Errorf("%d bytes are new ones", n)
						}
						if n := bytes.Count(frame, []byte("a")); early != (n < len(in)) || n > at+700<<10 {
							t.Errorf("%d bytes of the message, early: %v", n, early)
						}
						if cancelled := slices.ContainsFunc(between, func(f wirepeer.Frame) bool { return f.Type == wire.TypeCancel && f.ID == 1 }); early && cancelled == deadline {
							t.Errorf("CANCEL before the end: %v", cancelled)
						}
						small := apart(context.Background(), c, "Echo.Say", text("small"), anser.Timeout(0))
						if f, err := p.NextOf(wire.TypeRequest); f.ID != 2 || err != nil {
							t.Fatal(f.ID, err)
						}
						p.Send(wirepeer.Reply(2, []byte("good")))
						if out, err := small.Wait(); err != nil || string(*out) != "good" {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

// A server leaves out the rest of a reply whose call was cancelled.
func TestCancelOfACallWhoseReplyIsBeingWritten(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say":   echo,
			"Echo.Large": func(context.Context, *[]byte) (*[]byte, error) { b := make([]byte, 2<<20); return &b, nil },
		})
		p, _ := partsPeer(t, network, true, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Large"), wirepeer.Request(1, 2, nil))
		synctest.Wait()
		p.Send(wire.AppendCancel(nil, 1), wirepeer.Request(2, 2, nil), wirepeer.Request(3, 1, []byte("small")))
		synctest.Wait()
		frame, early, _, err := join(p, 1)
		if !early || len(frame) > 700<<10 || err != nil {
			t.Errorf("%d bytes, early: %v, %v", len(frame), early, err)
		}
		frame, early, _, err = join(p, 2)
		if early || len(frame) < 2<<20 || err != nil {
			t.Errorf("%d bytes of another reply, early: %v, %v", len(frame), early, err)
		}
	})
}

// A client closes the connection of a server that ends a reply early for which a call waits.
func TestReplyEndsEarly(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprintf("cancelled=%v", cancelled), func(t *testing.T) {
			partsBubble(t, func(t *testing.T, network *ansertest.Network) {
				accepted := acceptPeer(t, network.Listen("a:1"), true, false)
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
				defer c.Close()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				waits := apart(ctx, c, "Echo.Say", text("large"), anser.Timeout(0), anser.Attempts(1))
				p := <-accepted
				defer p.Close()
				if _, err := p.NextOf(wire.TypeRequest); err != nil {
					t.Fatal(err)
				}
				p.Send(wirepeer.Parts(wirepeer.Reply(1, make([]byte, 100_000)), 64, 50_000)[0])
				if cancelled {
					cancel()
					if _, err := p.NextOf(wire.TypeCancel); err != nil {
						t.Fatal(err)
					}
				}
				p.Send(wire.AppendPartHead(nil, 1, 0))
				if !cancelled {
					if reason, _, err := p.ReadClose(); reason != wire.BadFrame || err != nil {
						t.Error(reason, err)
					}
					p.Close()
					if _, err := waits.Wait(); fault(t, err).Code != anser.Unavailable {
						t.Error(err)
					}
					return
				}
				waits.Wait()
				small := apart(context.Background(), c, "Echo.Say", text("small"), anser.Timeout(0))
				f, err := p.NextOf(wire.TypeRequest)
				if err != nil {
					t.Fatal(err)
				}
				p.Send(wirepeer.Reply(f.ID, []byte("good")))
				if out, err := small.Wait(); err != nil || string(*out) != "good" {
					t.Error(err)
				}
			})
		})
	}
}

// PARTs are smaller while other frames pass, so that those wait for less.
func TestPartsAreSmallerWhileOthersPass(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		accepted := acceptPeer(t, network.Listen("a:1"), true, false)
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		defer c.Close()
		in := make([]byte, 4<<20)
		large := apart(context.Background(), c, "Echo.Say", &in, anser.Timeout(0))
		p := <-accepted
		defer p.Close()
		synctest.Wait()
		var small []*result
		largest, left := 0, len(in)
		for left > 0 {
			f, err := p.Next()
			switch {
			case err != nil:
				t.Fatal(err)
			case f.Type == wire.TypeRequest:
				p.Send(wirepeer.Reply(f.ID, nil))
			case f.Type == wire.TypePart:
				if left -= len(f.Body); len(small) == 0 && len(f.Body) > 64<<10 {
					small = append(small, apart(context.Background(), c, "Echo.Say", text("small"), anser.Timeout(0)))
					synctest.Wait()
				} else if left < 2<<20 { // after the PART that was begun
					largest = max(largest, len(f.Body))
				}
			}
		}
		if len(small) == 0 || largest == 0 || largest > 130<<10 {
			t.Errorf("PARTs of %d bytes after %d other frames", largest, len(small))
		}
		p.Send(wirepeer.Reply(1, nil))
		for _, r := range append(small, large) {
			if _, err := r.Wait(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Clients and servers that swap large messages, cancel some of them, and make small calls next to
// them, get every answer that they wait for.
func TestPartsUnderLoad(t *testing.T) {
	l := listen(t)
	s := serve(t, l, map[string]handler{"Echo.Say": echo})
	c := dial(t, l.Addr().String(), anser.Conns(1))
	var callers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 3 {
		callers.Go(func() {
			for j := range 30 {
				in := pattern(lentFrom+j*100_000, uint64(i*100+j))
				ctx, cancel := context.WithCancel(context.Background())
				if j%3 == 0 {
					go cancel()
				}
				out, err := anser.Call[[]byte](ctx, c, "Echo.Say", &in, anser.Timeout(0))
				if err == nil && !bytes.Equal(*out, in) || err != nil && j%3 != 0 {
					t.Errorf("%d bytes: %v", len(in), err)
				}
				clear(in)
				cancel()
			}
		})
	}
	var small sync.WaitGroup
	for i := range 2 {
		small.Go(func() {
			for j := 0; ; j++ {
				in := fmt.Sprintf("small-%d-%d", i, j)
				if out, err := call(context.Background(), c, "Echo.Say", in, anser.Timeout(0)); out != in || err != nil {
					t.Error(out, err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	small.Wait()
	eventually(t, "nothing is held", func() bool { return s.Stats().Memory == 0 && s.Stats().InFlight == 0 })
}
