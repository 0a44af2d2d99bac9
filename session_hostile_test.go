package anser_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// hostile accepts a client that takes calls and returns its peer, after the client's settings.
func hostile(t *testing.T, network *ansertest.Network, opts ...anser.ServerOption) (*wirepeer.Peer, wire.Settings, *anser.Server) {
	t.Helper()
	l := network.Listen("a:1")
	h := handlers(t, opts...)
	anser.Handle(h, "Client.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		<-ctx.Done()
		return in, nil
	})
	dial(t, "a:1", anser.Handlers(h), anser.Dialer(network.Dial), anser.WriteStall(5*time.Second))
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close(); l.Close() })
	p := wirepeer.New(nc)
	settings, err := p.Handshake()
	if err != nil {
		t.Fatal(err)
	}
	return p, settings, h
}

const fromServer = 1 << 63

// pushed is a REQUEST of a server.
func pushed(id uint64, method uint32, flags wire.Flags) []byte {
	f := wire.AppendRequest(nil, id|fromServer, flags, &wire.Request{Method: method, Codec: 1, Priority: 2})
	wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
	return f
}

// A server cannot have more calls open than the client allows, and streams are refused.
func TestHostileServerIsLimited(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		p, settings, h := hostile(t, network, anser.MaxCalls(5))
		if settings.Session == 0 || settings.MaxCalls != 5 {
			t.Errorf("%+v", settings)
		}
		p.Send(wire.AppendMethod(nil, 1, "Client.Wait"))
		for id := range uint64(8) {
			p.Send(pushed(id+1, 1, 0))
		}
		p.Send(pushed(9, 1, wire.FlagStream))
		for _, want := range []struct {
			id   uint64
			code wire.Code
		}{{6, wire.ResourceExhausted}, {7, wire.ResourceExhausted}, {8, wire.ResourceExhausted}, {9, wire.Unimplemented}} {
			f, err := p.NextOf(wire.TypeError)
			if err != nil {
				t.Fatal(err)
			}
			if e, _ := wire.ParseError(f.Flags, f.Body); f.ID != want.id|fromServer || e.Code != want.code || e.Outcome != wire.Refused {
				t.Errorf("%x: %+v, want %+v", f.ID, e, want)
			}
		}
		if st := h.Stats(); st.InFlight != 5 || st.Refused != 4 {
			t.Errorf("%+v", st)
		}
		p.Send(wire.AppendCancel(nil, 1|fromServer))
		synctest.Wait()
		if st := h.Stats(); st.InFlight != 4 || st.Cancelled != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// A server that makes its client answer, and reads nothing, cannot fill the client's memory.
func TestHostileServerThatFloods(t *testing.T) {
	for name, frames := range map[string]func(id uint64) []byte{
		"refused calls": func(id uint64) []byte { return pushed(id, 1, 0) },
		"pings between calls": func(id uint64) []byte {
			return wire.AppendPing(pushed(id, 1, wire.FlagOneway), wire.TypePing, id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				p, _, _ := hostile(t, network)
				p.Send(wire.AppendMethod(nil, 1, "No.Such"))
				sent := uint64(0)
				for ; sent < 1_000_000; sent++ {
					if p.Send(frames(sent+1)) != nil {
						break
					}
				}
				if sent == 1_000_000 {
					t.Error("the client is still there after a million frames whose answers were not read")
				}
			})
		})
	}
}

// A frame that a server must not send ends the connection.
func TestHostileServerThatBreaksTheProtocol(t *testing.T) {
	for name, row := range map[string]struct {
		frames []byte
		reason wire.Reason
	}{
		"id of a client": {append(wire.AppendMethod(nil, 1, "Client.Wait"), wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 1})...), wire.BadID},
		"id twice":       {append(append(wire.AppendMethod(nil, 1, "Client.Wait"), pushed(1, 1, 0)...), pushed(1, 1, 0)...), wire.BadID},
		"stream id back": {append(append(wire.AppendMethod(nil, 1, "Client.Wait"), pushed(2, 1, 0)...), pushed(1, 1, wire.FlagStream)...), wire.BadID},
		"no such method": {pushed(1, 7, 0), wire.BadMethod},
		"method twice":   {append(wire.AppendMethod(nil, 1, "A.B"), wire.AppendMethod(nil, 1, "A.C")...), wire.BadMethod},
		"cancel unmade":  {wire.AppendCancel(nil, 5|fromServer), wire.BadID},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				p, _, _ := hostile(t, network)
				p.Send(row.frames)
				if reason, _, err := p.ReadClose(); err != nil || reason != row.reason {
					t.Errorf("%v, %v; want %v", reason, err, row.reason)
				}
			})
		})
	}
}
