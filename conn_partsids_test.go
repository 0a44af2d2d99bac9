package anser_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A client takes the id of a REQUEST in PARTs once, however that has ended.
func TestClientTakesAnIDInPartsOnce(t *testing.T) {
	const id = fromServer | 1
	parts := wirepeer.Parts(wirepeer.Request(id, 1, make([]byte, 100_000)), 64, 50_000)
	early := wire.AppendPartHead(nil, id, 0)
	again := wirepeer.Request(id, 1, []byte("again"))
	for name, frames := range map[string][]byte{
		"in the middle":      slices.Concat(parts[0], again),
		"after an early end": slices.Concat(parts[0], parts[1], early, again),
		"after CANCEL":       slices.Concat(parts[0], wire.AppendCancel(nil, id), again),
		"after both":         slices.Concat(parts[0], wire.AppendCancel(nil, id), parts[1], early, again),
		"after the end":      slices.Concat(slices.Concat(parts...), again),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				p, _, h := hostile(t, network)
				p.Send(wire.AppendMethod(nil, 1, "Client.Wait"), frames)
				if reason, text, err := p.ReadClose(); reason != wire.BadID || err != nil {
					t.Errorf("%s: %s, %v; want %s", reason, text, err, wire.BadID)
				}
				if n := h.Stats().Cancelled; name == "after CANCEL" && n != 1 {
					t.Errorf("%d calls are counted as cancelled", n)
				}
			})
		})
	}
}

// The id of a REPLY in PARTs is checked when the first one arrives, on both sides.
func TestFirstPartOfAnUnexpectedReply(t *testing.T) {
	first := func(id uint64) []byte {
		return wirepeer.Parts(wirepeer.Reply(id, make([]byte, 100_000)), 64)[0]
	}
	for name, c := range map[string]struct {
		id   uint64
		want wire.Reason
	}{
		"never made":      {fromServer | 3, wire.BadID},
		"other direction": {3, wire.BadFrame},
	} {
		t.Run("server/"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				_, p := partsServer(t, network)
				p.Send(first(c.id))
				if reason, text, err := p.ReadClose(); reason != c.want || err != nil {
					t.Errorf("%s: %s, %v; want %s", reason, text, err, c.want)
				}
			})
		})
		t.Run("client/"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				p, _, _ := hostile(t, network)
				p.Send(first(c.id ^ fromServer))
				if reason, text, err := p.ReadClose(); reason != c.want || err != nil {
					t.Errorf("%s: %s, %v; want %s", reason, text, err, c.want)
				}
			})
		})
	}
}

// calledBack dials a server as a client that takes calls, of which one is open.
func calledBack(t *testing.T, ctx context.Context, network *ansertest.Network) (s *anser.Server, p *wirepeer.Peer, waits *result) {
	t.Helper()
	began := make(chan *anser.Session, 1)
	s = anser.NewServer(silent, anser.OnSession(func(sess *anser.Session) { began <- sess }))
	run(t, s, network.Listen("a:1"))
	nc, err := network.Dial(context.Background(), "tcp", "a:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	p = wirepeer.New(nc)
	settings := takesParts(true, false)
	settings.Session = 7
	p.Send(wirepeer.Hello(settings))
	if _, err := p.ReadHello(); err != nil {
		t.Fatal(err)
	}
	waits = apart(ctx, (<-began).Client(), "Client.Say", text("hello"), anser.Timeout(0), anser.Attempts(1))
	if f, err := p.NextOf(wire.TypeRequest); f.ID != fromServer|1 || err != nil {
		t.Fatal(f.ID, err)
	}
	return s, p, waits
}

// A server closes the connection of a client that ends a reply early for which a call waits.
func TestReplyOfAClientEndsEarly(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		_, p, waits := calledBack(t, context.Background(), network)
		p.Send(wirepeer.Parts(wirepeer.Reply(fromServer|1, make([]byte, 100_000)), 64)[0], wire.AppendPartHead(nil, fromServer|1, 0))
		if reason, text, err := p.ReadClose(); reason != wire.BadFrame || err != nil {
			t.Errorf("%s: %s, %v", reason, text, err)
		}
		p.Close()
		if _, err := waits.Wait(); fault(t, err).Code != anser.Unavailable {
			t.Error(err)
		}
	})
}

// The reply to a call that was cancelled takes no memory when it arrives in PARTs.
func TestReplyInPartsToACancelledCall(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		ctx, cancel := context.WithCancel(context.Background())
		s, p, waits := calledBack(t, ctx, network)
		cancel()
		waits.Wait()
		if f, err := p.NextOf(wire.TypeCancel); f.ID != fromServer|1 || err != nil {
			t.Fatal(f.ID, err)
		}
		for i, part := range wirepeer.Parts(wirepeer.Reply(fromServer|1, make([]byte, 300_000)), 64, 100_000) {
			p.Send(part)
			synctest.Wait()
			if n := s.Stats().Memory; n != 0 {
				t.Errorf("%d bytes are held after %d PARTs", n, i+1)
			}
		}
		p.Send(wire.AppendPing(nil, wire.TypePing, 5))
		if _, err := p.NextOf(wire.TypePong); err != nil {
			t.Error(err)
		}
	})
}
