package anser_test

import (
	"context"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// Trailers that break the rules are an error of their call, and of nothing else.
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
