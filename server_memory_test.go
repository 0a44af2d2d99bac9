package anser_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A request that does not fit into the memory is refused before it has arrived, uses none, and
// affects nothing else on its connection. When the other requests are done there is room again.
func TestMaxMemory(t *testing.T) {
	const message, held = 1 << 20, 4<<20 - 300_000
	release := make(chan struct{})
	l := listen(t)
	// With MaxQueueTime the server checks the socket.
	s := anser.NewServer(silent, anser.MaxMessage(message), anser.MaxMemory(4*message), anser.MaxQueueTime(time.Hour))
	anser.Handle(s, "Echo.Say", echo)
	anser.Handle(s, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		<-release
		return text(""), nil
	}, anser.Concurrent())
	anser.Handle(s, "Echo.Apart", echo, anser.Concurrent())
	run(t, s, l)
	p := rawDial(t, l.Addr().String())
	p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Wait"), wire.AppendMethod(nil, 3, "Echo.Apart"))
	// None of them needs more than the buffer that every busy connection has.
	const calls = held / 60_000
	for id := range uint64(calls) {
		p.Send(wirepeer.Request(id+1, 2, make([]byte, held/calls)))
	}
	eventually(t, "they are held", func() bool { return s.Stats().Memory == held/calls*calls })

	large := wirepeer.Request(1000, 1, make([]byte, message-1))
	p.Send(large[:message/2]) // the rest has not been sent when the answer arrives
	f, err := p.Next()
	if f.Type != wire.TypeError || f.ID != 1000 || err != nil {
		t.Fatal(f.Type, f.ID, err)
	}
	e, err := wire.ParseError(f.Flags, f.Body)
	if e.Code != wire.ResourceExhausted || anser.Outcome(e.Outcome) != anser.Refused || !strings.Contains(e.Message, "limit of 4194304 bytes of requests at once (anser.MaxMemory)") || err != nil {
		t.Errorf("%+v, %v", e, err)
	}
	p.Send(large[message/2:], wirepeer.Request(1001, 1, []byte("small")))
	if f, err := p.Next(); f.Type != wire.TypeReply || f.ID != 1001 || err != nil {
		t.Fatal(f.Type, f.ID, err)
	}
	st := s.Stats()
	if st.LimitsHit["MaxMemory"] != 1 || st.Refused != 1 || st.Methods["Echo.Say"].Refused != 1 || st.Memory != held/calls*calls {
		t.Errorf("%+v", st)
	}
	close(release)
	for range calls {
		if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
			t.Fatal(f.Type, err)
		}
	}
	for id := range uint64(10) {
		// A call releases its memory when its reply was sent.
		eventually(t, "nothing is held", func() bool { return s.Stats().Memory == 0 })
		method := 1 + 2*uint32(id%2)
		p.Send(wirepeer.Request(2000+id, method, make([]byte, message)))
		if f, err := p.Next(); f.Type != wire.TypeReply || len(f.Body) < message || err != nil {
			t.Fatal(f.Type, err)
		}
	}
	p.Close()
	eventually(t, "nothing is held", func() bool { return s.Stats().Memory == 0 })
}

// Counted memory is released in every way in which a call or a connection can end.
func TestMemoryIsGivenBack(t *testing.T) {
	const message = 300_000
	l := listen(t)
	s := anser.NewServer(silent, anser.MaxMessage(message), anser.MaxMemory(8*message), anser.MaxInFlight(3))
	anser.Handle(s, "Echo.Apart", echo, anser.Concurrent())
	anser.Handle(s, "Echo.Sleep", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		time.Sleep(30 * time.Millisecond) // on the reader goroutine, which is replaced
		return in, nil
	}, anser.Inline())
	anser.Handle(s, "Echo.Exit", func(context.Context, *[]byte) (*[]byte, error) {
		runtime.Goexit()
		return nil, nil
	}, anser.Concurrent())
	anser.Handle(s, "Echo.Panic", func(context.Context, *[]byte) (*[]byte, error) { panic("on purpose") }, anser.Concurrent())
	run(t, s, l)
	for range 20 {
		p := rawDial(t, l.Addr().String())
		var frames []byte
		for i, name := range []string{"Echo.Apart", "Echo.Sleep", "Echo.Panic", "Echo.Exit"} {
			frames = wire.AppendMethod(frames, uint32(i+1), name)
		}
		for id := range uint64(12) {
			frames = append(frames, wirepeer.Request(id+1, uint32(id%4+1), make([]byte, message-int(id)*9000))...)
		}
		frames = append(frames, wirepeer.Request(13, 1, make([]byte, message))[:message/2]...)
		go p.Send(frames)
		// All are refused while the calls of the previous connections are still there.
		for answers := 1; ; answers++ {
			f, err := p.NextOf(wire.TypeReply, wire.TypeError)
			if err != nil {
				t.Fatal(err)
			}
			if f.Type == wire.TypeReply || answers == 12 {
				break
			}
		}
		p.Close()
	}
	eventually(t, "nothing is held", func() bool { st := s.Stats(); return st.Memory == 0 && st.Conns == 0 && st.InFlight == 0 })
}

// After a whole request for which there was no memory, the header of the next PART may arrive in
// pieces.
func TestPartsAfterARequestWithoutMemory(t *testing.T) {
	const message = 1 << 20
	for _, within := range []bool{false, true} { // a frame in PARTs
		t.Run(map[bool]string{false: "first PART", true: "next PART"}[within], func(t *testing.T) {
			partsBubble(t, func(t *testing.T, network *ansertest.Network) {
				s, p := partsServer(t, network, anser.MaxMessage(message), anser.MaxMemory(4*message))
				in := pattern(100_000, 8)
				id, left := uint64(1), 4*message
				if within {
					p.Send(wirepeer.Parts(wirepeer.Request(id, 1, in), 64)[0])
					synctest.Wait()
					left -= int(s.Stats().Memory)
					id++
				}
				for ; left > 60_000; left -= 60_000 {
					p.Send(wirepeer.Request(id, 2, make([]byte, 60_000)))
					id++
				}
				synctest.Wait()
				refused := func(id uint64) {
					t.Helper()
					f, err := p.Next()
					if err != nil {
						t.Fatal(err)
					}
					if e, _ := wire.ParseError(f.Flags, f.Body); f.ID != id || e.Code != wire.ResourceExhausted {
						t.Fatalf("%s %d: %+v", f.Type, f.ID, e)
					}
				}
				p.Send(wirepeer.Request(id, 1, make([]byte, 200_000)))
				refused(id)
				inPieces := func(part []byte) {
					p.Write(part[:9])
					synctest.Wait()
					p.Write(part[9:])
				}
				if within {
					inPieces(wirepeer.Parts(wirepeer.Request(1, 1, in), 64)[1])
					if err := echoOf(p, 1, in); err != nil {
						t.Error(err)
					}
					return
				}
				inPieces(wirepeer.Parts(wirepeer.Request(id+1, 1, in), 64)[0])
				refused(id + 1)
			})
		})
	}
}

// While the memory is used up, a client cannot make the server hold frames that are no requests,
// unless the server waits for them.
func TestOtherFramesWithoutMemory(t *testing.T) {
	const message, held = 4 << 20, 16<<20 - 30_000
	l := listen(t)
	release := make(chan struct{})
	s := anser.NewServer(silent, anser.MaxMessage(message), anser.MaxMemory(16<<20))
	anser.Handle(s, "Echo.Wait", func(context.Context, *[]byte) (*[]byte, error) { <-release; return text(""), nil }, anser.Concurrent())
	anser.Handle(s, "Echo.Ask", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		session, _ := anser.SessionFrom(ctx)
		return anser.Call[[]byte](ctx, session.Client(), "Local.Say", in, anser.Timeout(0))
	}, anser.Concurrent())
	run(t, s, l)
	t.Cleanup(func() { close(release) })
	p := rawDial(t, l.Addr().String())
	p.Send(wire.AppendMethod(nil, 1, "Echo.Wait"))
	const calls = held / 60_000
	for id := range uint64(calls) {
		p.Send(wirepeer.Request(id+1, 1, make([]byte, held/calls)))
	}
	eventually(t, "they are held", func() bool { return s.Stats().Memory == held/calls*calls })

	for _, c := range []struct {
		frame  wire.Header
		reason wire.Reason
	}{
		{wire.Header{Type: wire.TypeReply, ID: 1 | fromServer, Length: 3 << 20}, wire.BadID},
		{wire.Header{Type: wire.TypeReply, ID: 1, Length: 3 << 20}, wire.BadFrame},
		{wire.Header{Type: wire.TypeError, ID: 1 | fromServer, Length: 3 << 20}, wire.BadID},
		{wire.Header{Type: wire.TypeData, ID: 1, Length: 3 << 20}, wire.FlowControl},
		{wire.Header{Type: wire.TypeMethod, Length: 3 << 20}, wire.FrameTooLarge},
		{wire.Header{Type: wire.TypePing, Length: 100_000}, wire.FrameTooLarge},
	} {
		t.Run(c.frame.Type.String(), func(t *testing.T) {
			p := rawDial(t, l.Addr().String())
			p.Send(append(wire.AppendHeader(nil, c.frame), make([]byte, 100_000-1)...)) // it stays incomplete
			if reason, text, err := p.ReadClose(); reason != c.reason || err != nil {
				t.Error(reason, text, err)
			}
			if n := s.Stats().Memory; n != held/calls*calls {
				t.Errorf("%d bytes are held, want %d", n, held/calls*calls)
			}
		})
	}

	for _, sealed := range []bool{false, true} {
		t.Run(fmt.Sprintf("honest, checksums=%v", sealed), func(t *testing.T) {
			honestWithoutMemory(t, l.Addr().String(), sealed)
		})
	}
}

// honestWithoutMemory is a client whose frames are answered, or ignored, as if there were memory.
func honestWithoutMemory(t *testing.T, address string, sealed bool) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	p := wirepeer.New(nc)
	settings := takesParts(false, sealed)
	settings.Session = 7
	p.Send(wirepeer.Hello(settings))
	if _, err := p.ReadHello(); err != nil {
		t.Fatal(err)
	}
	p.Sealed = sealed
	next := func(types ...wire.Type) wirepeer.Frame {
		t.Helper()
		f, err := p.NextOf(append(types, wire.TypeClose)...)
		if f.Type != types[0] || err != nil {
			t.Fatalf("%s %d: %q, %v", f.Type, f.ID, f.Body[:min(len(f.Body), 100)], err)
		}
		return f
	}
	asked := func(id uint64) uint64 {
		t.Helper()
		p.Send(wirepeer.Request(id, 1, []byte("small")))
		return next(wire.TypeRequest).ID
	}
	p.Send(wire.AppendMethod(nil, 1, "Echo.Ask"))

	// The reply to a call that was cancelled, when it has come already.
	late := asked(1)
	p.Send(wire.AppendCancel(nil, 1))
	next(wire.TypeCancel)
	p.Send(wirepeer.Reply(late, make([]byte, 1<<20)))

	// A frame of a later version, and one that the server waits for.
	unknown := wire.Header{Type: wire.FirstSkippable, ID: 5, Length: 100_000}
	p.Send(append(wire.AppendHeader(nil, unknown), make([]byte, unknown.Length)...))
	p.Send(wirepeer.Reply(asked(2), make([]byte, 1<<20)))
	if f := next(wire.TypeReply, wire.TypeError); f.ID != 2 || len(f.Body) < 1<<20 {
		t.Fatal(f.ID, len(f.Body))
	}

	// The first PART of a request, as large as it may be.
	p.Send(wirepeer.Parts(wirepeer.Request(3, 1, make([]byte, 200_000)), wire.MaxFirstPart)[0])
	f := next(wire.TypeError, wire.TypeReply)
	if e, err := wire.ParseError(f.Flags, f.Body); f.ID != 3 || e.Code != wire.ResourceExhausted || err != nil {
		t.Errorf("%d: %+v, %v", f.ID, e, err)
	}
}

// What arrives and is thrown away does not give a frame in PARTs more time.
func TestPartsStallWithoutMemory(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		const message = 1 << 20
		s, p := partsServer(t, network, anser.MaxMessage(message), anser.MaxMemory(4*message), anser.WriteStall(30*time.Second))
		p.Send(wirepeer.Parts(wirepeer.Request(1, 1, make([]byte, 100_000)), 64)[0])
		synctest.Wait()
		id := uint64(2)
		for left := 4*message - int(s.Stats().Memory); left > 60_000; left -= 60_000 {
			p.Send(wirepeer.Request(id, 2, make([]byte, 60_000)))
			id++
		}
		began := time.Now()
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			for range 10 { // each takes less than the limit
				feedSlowly(p, wirepeer.Request(id, 2, make([]byte, 100_000)))
				id++
			}
		}()
		if reason, _, err := p.ReadClose(); reason != wire.Timeout || err != nil {
			t.Error(reason, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Error(took)
		}
		p.Close()
		<-fed
	})
}

// A large reply counts until it is written, also if another goroutine writes it than the one that
// ran the call.
func TestMemoryOfALentReply(t *testing.T) {
	for _, reads := range []bool{true, false} {
		t.Run(fmt.Sprintf("reads=%v", reads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &ansertest.Network{Buffer: 4 << 10}
				release := make(chan struct{})
				s := anser.NewServer(silent)
				anser.Handle(s, "Documents.Make", func(context.Context, *document) (*document, error) {
					<-release
					return &document{strings.Repeat("a", 2<<20)}, nil
				}, anser.Concurrent())
				anser.Handle(s, "Echo.Say", echo, anser.Inline())
				run(t, s, network.Listen("a:1"))
				p, _ := partsPeer(t, network, false, false)
				request := wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: codec.JSONID, Payload: []byte(`{}`)})
				p.Send(wire.AppendMethod(nil, 1, "Documents.Make"), wire.AppendMethod(nil, 2, "Echo.Say"), request,
					wirepeer.Request(2, 2, make([]byte, 60_000)))
				synctest.Wait() // the reader goroutine writes the second reply
				close(release)
				synctest.Wait()
				if st := s.Stats(); st.Memory < 2<<20 || st.InFlight != 0 {
					t.Errorf("%d bytes are held, %d calls in flight", st.Memory, st.InFlight)
				}
				if !reads {
					p.Close()
				} else if f, err := p.NextOf(wire.TypeReply); f.ID != 2 || err != nil {
					t.Error(f.ID, err)
				} else if f, err = p.NextOf(wire.TypeReply); f.ID != 1 || len(f.Body) < 2<<20 || err != nil {
					t.Error(f.ID, len(f.Body), err)
				}
				synctest.Wait()
				if n := s.Stats().Memory; n != 0 {
					t.Errorf("%d bytes are held in the end", n)
				}
			})
		})
	}
}

// So does the reply of a handler on the reader goroutine, and one that waits for it.
func TestMemoryOfLentInlineReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &ansertest.Network{Buffer: 4 << 10}
		s := anser.NewServer(silent)
		large := make([]byte, 2<<20)
		anser.Handle(s, "Echo.Large", func(context.Context, *[]byte) (*[]byte, error) { return &large, nil }, anser.Inline())
		run(t, s, network.Listen("a:1"))
		p, _ := partsPeer(t, network, false, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Large"))
		for id := range uint64(2) {
			p.Send(wirepeer.Request(id+1, 1, nil))
			synctest.Wait()
			if n := s.Stats().Memory; n < int64(id+1)<<21 || n > int64(id+1)<<21+1000 {
				t.Errorf("%d bytes are held for %d replies", n, id+1)
			}
		}
		for id := range uint64(2) {
			if f, err := p.NextOf(wire.TypeReply); f.ID != id+1 || len(f.Body) < 2<<20 || err != nil {
				t.Error(f.ID, len(f.Body), err)
			}
			synctest.Wait()
			if n := s.Stats().Memory; n > int64(1-id)<<21+1000 {
				t.Errorf("%d bytes are held after %d replies", n, id+1)
			}
		}
	})
}
