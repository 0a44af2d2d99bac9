package anser_test

import (
	"bytes"
	"context"
	"fmt"
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

// partsServer is a server with methods that a peer has named: Echo.Say as 1, and Echo.Wait, which
// waits for the end of its context, as 2.
func partsServer(t *testing.T, network *ansertest.Network, opts ...anser.ServerOption) (*anser.Server, *wirepeer.Peer) {
	t.Helper()
	s := anser.NewServer(append(opts, silent)...)
	anser.Handle(s, "Echo.Say", echo)
	anser.Handle(s, "Echo.Wait", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, anser.Concurrent())
	run(t, s, network.Listen("a:1"))
	p, own := partsPeer(t, network, false, false)
	if own.Features&wire.FeatureParts == 0 {
		t.Error("the server does not say that it takes PARTs")
	}
	p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Wait"))
	return s, p
}

// echoOf returns an error unless the next frame is a REPLY with the payload.
func echoOf(p *wirepeer.Peer, id uint64, payload []byte) error {
	f, err := p.Next()
	if err != nil {
		return err
	}
	r, err := wire.ParseReply(f.Flags, f.Body)
	if f.Type != wire.TypeReply || f.ID != id || err != nil || !bytes.Equal(r.Payload, payload) {
		return fmt.Errorf("%s %d with %d bytes, %w; want the reply %d with %d bytes", f.Type, f.ID, len(r.Payload), err, id, len(payload))
	}
	return nil
}

// A server answers small calls between the PARTs of a large request, which runs when it is
// complete.
func TestServerTakesParts(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		s, p := partsServer(t, network)
		in := pattern(700_000, 3)
		id := uint64(0)
		for range 3 {
			id++
			large := id
			for _, part := range wirepeer.Parts(wirepeer.Request(large, 1, in), 64, 60_000, 1024, 200_000, 30_000) {
				go p.Send(part) // the connection holds less
				synctest.Wait()
				if id++; id == large+6 {
					break
				}
				if left := s.Stats().InFlight; left != 0 {
					t.Errorf("%d calls run", left)
				}
				p.Send(wirepeer.Request(id, 1, []byte("small")))
				if err := echoOf(p, id, []byte("small")); err != nil {
					t.Fatal(err)
				}
			}
			if err := echoOf(p, large, in); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if st := s.Stats(); st.Memory != 0 || st.Methods["Echo.Say"].Calls != 3*6 {
			t.Errorf("%+v", st)
		}
	})
}

// What ends a large request in the middle of its PARTs affects nothing else.
func TestServerDropsParts(t *testing.T) {
	for _, end := range []string{"early", "cancelled", "cancelled, then early", "cancelled twice"} {
		t.Run(end, func(t *testing.T) {
			partsBubble(t, func(t *testing.T, network *ansertest.Network) {
				s, p := partsServer(t, network)
				parts := wirepeer.Parts(wirepeer.Request(1, 1, make([]byte, 700_000)), 64, 300_000, 50_000, 250_000)
				early := wire.AppendPartHead(nil, 1, 0)
				cancel := wire.AppendCancel(nil, 1)
				frames := slices.Clip(parts[:2])
				switch end {
				case "early":
					frames = append(frames, early, cancel)
				case "cancelled":
					frames = append(append(frames, cancel), parts[2:]...)
				case "cancelled, then early":
					frames = append(frames, cancel, parts[2], early)
				case "cancelled twice":
					frames = append(append(frames, cancel, parts[2], cancel), parts[3:]...)
				}
				for _, f := range frames {
					if err := p.Send(f); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if st := s.Stats(); st.Memory != 0 || st.InFlight != 0 {
					t.Errorf("%+v", st)
				}
				parts = wirepeer.Parts(wirepeer.Request(2, 1, make([]byte, 100_000)), 64)
				p.Send(parts[0], wirepeer.Request(3, 1, nil), parts[1])
				if err := echoOf(p, 3, nil); err != nil {
					t.Error(err)
				}
				if err := echoOf(p, 2, make([]byte, 100_000)); err != nil {
					t.Error(err)
				}
				if n := s.Stats().Methods["Echo.Say"].Calls; n != 2 {
					t.Errorf("%d calls ran", n)
				}
			})
		})
	}
}

// A REQUEST whose PARTs began before the client's DRAIN is served, and the connection ends after
// its reply; one that begins after it is refused.
func TestDrainBetweenParts(t *testing.T) {
	for _, ack := range []bool{false, true} {
		for _, dropped := range []bool{false, true} {
			t.Run(fmt.Sprintf("ack=%v/dropped=%v", ack, dropped), func(t *testing.T) {
				partsBubble(t, func(t *testing.T, network *ansertest.Network) {
					s, p := partsServer(t, network)
					in := pattern(100_000, 4)
					parts := wirepeer.Parts(wirepeer.Request(1, 1, in), 64, 50_000)
					p.Send(parts[0])
					synctest.Wait()
					drain := wire.AppendDrain(nil, 0, 0)
					var stopped sync.WaitGroup
					defer stopped.Wait()
					if ack {
						ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
						defer cancel()
						stopped.Go(func() { s.Shutdown(ctx) })
						if f, err := p.Next(); f.Type != wire.TypeDrain || err != nil {
							t.Fatal(f.Type, err)
						}
						drain = wire.AppendDrain(nil, wire.FlagAck, 0)
					}
					p.Send(parts[1], drain, wirepeer.Request(2, 1, []byte("late")))
					synctest.Wait()
					if f, err := p.Next(); f.Type != wire.TypeError || f.ID != 2 || err != nil {
						t.Fatal(f.Type, f.ID, err)
					}
					if dropped {
						p.Send(wire.AppendPartHead(nil, 1, 0))
					} else {
						go p.Send(parts[2])
						if err := echoOf(p, 1, in); err != nil {
							t.Fatal(err)
						}
					}
					if reason, _, err := p.ReadClose(); reason != wire.Normal || err != nil {
						t.Error(reason, err)
					}
					p.Close()
				})
			})
		}
	}
}

// A REQUEST that begins after the client's DRAIN does not keep the connection open.
func TestPartsAfterDrain(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		_, p := partsServer(t, network)
		parts := func(id uint64) [][]byte { return wirepeer.Parts(wirepeer.Request(id, 1, make([]byte, 100_000)), 64) }
		drain := wire.AppendDrain(nil, 0, 0)
		p.Send(parts(1)[0], drain, wire.AppendPartHead(nil, 1, 0), parts(2)[0], drain)
		began := time.Now()
		if reason, text, err := p.ReadClose(); reason != wire.Normal || err != nil {
			t.Errorf("%s: %s, %v", reason, text, err)
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("closed after %v", d)
		}
		p.Close()
	})
}

// A server that shuts down sends the whole of a large reply before CLOSE.
func TestCloseAfterALargeReplyInParts(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		want := pattern(2<<20, 5)
		s := serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Large": func(context.Context, *[]byte) (*[]byte, error) { return &want, nil },
		})
		p, _ := partsPeer(t, network, true, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Large"), wirepeer.Request(1, 1, nil))
		synctest.Wait()
		var stopped sync.WaitGroup
		defer stopped.Wait()
		stopped.Go(func() { s.Shutdown(context.Background()) })
		var frame []byte
		for range 2 { // the PARTs before DRAIN, and those after it
			for {
				f, err := p.Next()
				if err != nil {
					t.Fatal(err)
				}
				if f.Type != wire.TypePart {
					p.Send(wire.AppendDrain(nil, wire.FlagAck, 0))
					synctest.Wait()
					break
				}
				if frame = append(frame, f.Body...); len(frame) > len(want) {
					break
				}
			}
			if len(frame) == 0 {
				t.Error("DRAIN has waited for nothing")
			}
		}
		if !bytes.HasSuffix(frame, want) {
			t.Fatalf("%d bytes of the reply", len(frame))
		}
		if reason, _, err := p.ReadClose(); reason != wire.Normal || err != nil {
			t.Error(reason, err)
		}
		p.Close()
	})
}

// A handler that blocks the reader goroutine between two PARTs does not keep the others from
// arriving.
func TestHandoffBetweenParts(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Block", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-release
			return in, nil
		}, anser.Inline())
		anser.Handle(s, "Echo.Say", echo)
		run(t, s, network.Listen("a:1"))
		p, _ := partsPeer(t, network, false, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Block"))
		in := pattern(400_000, 6)
		parts := wirepeer.Parts(wirepeer.Request(1, 1, in), 64, 100_000, 100_000, 2000)
		for i, part := range parts {
			go p.Send(part)
			synctest.Wait()
			if i < len(parts)-1 {
				p.Send(wirepeer.Request(uint64(i+2), 2, []byte("blocked")))
				time.Sleep(10 * time.Millisecond)
			}
		}
		if err := echoOf(p, 1, in); err != nil {
			t.Fatal(err)
		}
		if n := s.Stats().Handoffs; n < int64(len(parts)-1) {
			t.Errorf("%d times another goroutine went on reading", n)
		}
		close(release)
		for range parts[1:] {
			if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
				t.Fatal(f.Type, err)
			}
		}
		synctest.Wait()
		if st := s.Stats(); st.Memory != 0 || st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A large request for which there is no memory is refused when its first PART has arrived, or when
// more does not fit, and its other PARTs are dropped.
func TestPartsOverMaxMemory(t *testing.T) {
	const message = 1 << 20
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		s, p := partsServer(t, network, anser.MaxMessage(message), anser.MaxMemory(4*message))
		const calls = (4*message - 300_000) / 60_000
		for id := range uint64(calls) { // in the buffer that every busy connection has
			p.Send(wirepeer.Request(id+1, 2, make([]byte, 60_000)))
		}
		synctest.Wait()
		held := s.Stats().Memory
		if held != calls*60_000 {
			t.Fatalf("%d bytes are held", held)
		}
		parts := wirepeer.Parts(wirepeer.Request(500, 1, make([]byte, message)), 64, 200_000, 300_000)
		refused := false
		for i, part := range parts {
			p.Send(part)
			synctest.Wait()
			if i == 0 {
				p.Send(wirepeer.Request(501, 1, []byte("small")))
				if err := echoOf(p, 501, []byte("small")); err != nil {
					t.Fatal(err)
				}
			}
			if st := s.Stats(); st.LimitsHit["MaxMemory"] == 1 && !refused {
				refused = true
				f, err := p.Next()
				e, _ := wire.ParseError(f.Flags, f.Body)
				if f.ID != 500 || err != nil || e.Code != wire.ResourceExhausted || e.Outcome != wire.Refused {
					t.Fatalf("%s %d: %+v, %v", f.Type, f.ID, e, err)
				}
			}
			if got := s.Stats().Memory; got > 4*message || refused && got != held {
				t.Errorf("%d bytes are held", got)
			}
		}
		if !refused {
			t.Fatal("not refused")
		}
		p.Send(wirepeer.Request(502, 1, []byte("small")))
		if err := echoOf(p, 502, []byte("small")); err != nil {
			t.Fatal(err)
		}
	})
}

// A peer that breaks the rules of PARTs loses the connection, with the reason.
func TestHostileParts(t *testing.T) {
	request := wirepeer.Request(5, 1, make([]byte, 200_000))
	part := func(id uint64, size int) []byte {
		return append(wire.AppendPartHead(nil, id, uint32(size)), make([]byte, size)...)
	}
	first := wirepeer.Parts(request, 64)[0]
	with := func(change func(frame []byte)) []byte {
		f := bytes.Clone(request)
		change(f)
		return wirepeer.Parts(f, 64)[0]
	}
	for name, c := range map[string]struct {
		frames []byte
		want   wire.Reason
	}{
		"no frame":                       {part(5, 100), wire.BadFrame},
		"early end of no frame":          {part(5, 0), wire.BadFrame},
		"id 0":                           {part(0, 100), wire.BadID},
		"a large first PART":             {part(5, 1<<20), wire.BadFrame},
		"a small first PART":             {wirepeer.Parts(request, 63)[0], wire.BadFrame},
		"a small frame":                  {wirepeer.Parts(wirepeer.Request(5, 1, make([]byte, 60_000)), 64)[0], wire.BadFrame},
		"a second one inside":            {slices.Concat(first, wirepeer.Parts(wirepeer.Request(6, 1, make([]byte, 200_000)), 64)[0]), wire.BadID},
		"beyond the end":                 {slices.Concat(first, part(5, 150_000), part(5, 60_000)), wire.BadFrame},
		"far beyond the end":             {slices.Concat(first, part(5, 1<<20)), wire.BadFrame},
		"tiny PARTs":                     {slices.Concat(first, part(5, 1)), wire.BadFrame},
		"a PART inside":                  {wirepeer.Parts(append(wire.AppendPartHead(nil, 5, 200_000), make([]byte, 200_000)...), 64)[0], wire.BadFrame},
		"an id that was used":            {slices.Concat(wirepeer.Request(5, 2, nil), first), wire.BadID},
		"the id of a later call":         {slices.Concat(first, wirepeer.Request(4, 1, nil)), wire.BadID},
		"the id once more":               {slices.Concat(first, wirepeer.Request(5, 1, nil)), wire.BadID},
		"the id after a cancel":          {slices.Concat(first, wire.AppendCancel(nil, 5), wirepeer.Request(5, 1, nil)), wire.BadID},
		"the id after an early end":      {slices.Concat(first, part(5, 0), wirepeer.Request(5, 1, nil)), wire.BadID},
		"the id of the server":           {with(func(f []byte) { f[15] = 0x80 }), wire.BadID},
		"a method that was not named":    {with(func(f []byte) { f[wire.HeaderSize] = 9 }), wire.BadMethod},
		"longer than the limit":          {with(func(f []byte) { f[3] = 0x10 }), wire.FrameTooLarge},
		"a stream":                       {with(func(f []byte) { f[5] = byte(wire.FlagStream) }), wire.BadFrame},
		"a reply to a call of no one":    {slices.Concat(wirepeer.Parts(wirepeer.Reply(1<<63+1, make([]byte, 70_000)), 64, 40_000)...), wire.BadID},
		"CANCEL of a call of the future": {slices.Concat(first, wire.AppendCancel(nil, 6)), wire.BadID},
	} {
		t.Run(name, func(t *testing.T) {
			partsBubble(t, func(t *testing.T, network *ansertest.Network) {
				s, p := partsServer(t, network)
				go p.Send(c.frames)
				reason, text, err := p.ReadClose()
				if reason != c.want || err != nil {
					t.Errorf("%s: %s, %v; want %s", reason, text, err, c.want)
				}
				p.Close()
				synctest.Wait()
				if st := s.Stats(); st.Memory != 0 || st.InFlight != 0 || st.Conns != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// A peer that stalls in the middle of a frame in PARTs loses the connection, although other frames
// arrive.
func TestStalledParts(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		_, p := partsServer(t, network)
		p.Send(wirepeer.Parts(wirepeer.Request(1, 1, make([]byte, 200_000)), 64, 10_000)[0])
		var feeding sync.WaitGroup
		defer feeding.Wait()
		feeding.Go(func() {
			for id := uint64(2); p.Send(wirepeer.Request(id, 1, []byte("small"))) == nil; id++ {
				time.Sleep(time.Second)
			}
		})
		if reason, text, err := p.ReadClose(); reason != wire.Timeout || err != nil {
			t.Errorf("%s: %s, %v", reason, text, err)
		}
		p.Close()
	})
}

// A client reads small replies between the PARTs of a large one, and takes calls of its server in
// PARTs.
func TestClientTakesParts(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		far := anser.NewServer(silent)
		defer far.Close()
		anser.Handle(far, "Far.Say", echo)
		accepted := acceptPeer(t, network.Listen("a:1"), true, false)
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Handlers(far))
		defer c.Close()
		p := <-accepted
		defer p.Close()
		large := apart(context.Background(), c, "Echo.Say", text("large"), anser.Timeout(0))
		synctest.Wait()
		small := apart(context.Background(), c, "Echo.Say", text("small"), anser.Timeout(0))
		synctest.Wait()
		want := pattern(900_000, 7)
		parts := wirepeer.Parts(wirepeer.Reply(1, want), 64, 50_000, 400_000)
		p.Send(parts[0], parts[1], wirepeer.Reply(2, []byte("passes")))
		if out, err := small.Wait(); err != nil || string(*out) != "passes" {
			t.Fatal(err)
		}
		p.Send(parts[2], parts[3])
		if out, err := large.Wait(); err != nil || !bytes.Equal(*out, want) {
			t.Fatal(err)
		}
		request := wirepeer.Parts(wirepeer.Request(1<<63+1, 1, want), 64, 200_000, 300_000)
		p.Send(wire.AppendMethod(nil, 1, "Far.Say"), request[0], wirepeer.Request(1<<63+2, 1, []byte("passes")))
		if f, err := p.NextOf(wire.TypeReply); f.ID != 1<<63+2 || err != nil {
			t.Fatal(f.ID, err)
		}
		p.Send(request[1], request[2], request[3])
		frame, _, _, err := join(p, 1<<63+1)
		if err != nil || !bytes.HasSuffix(frame, want) {
			t.Fatal(len(frame), err)
		}
		request = wirepeer.Parts(wirepeer.Request(1<<63+3, 1, want), 64, 200_000, 300_000)
		p.Send(request[0], request[1], wire.AppendCancel(nil, 1<<63+3), request[2], request[3], wirepeer.Request(1<<63+4, 1, []byte("good")))
		if f, err := p.NextOf(wire.TypeReply); f.ID != 1<<63+4 || err != nil {
			t.Fatal(f.ID, err)
		}
	})
}
