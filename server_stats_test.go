package anser_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A call that was not run counts as refused, one that ran as a call, even if no caller waits for
// the reply.
func TestStatsOfCalls(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		anser.Handle(s, "Arith.Mul", mul)
		anser.Handle(s, "Arith.Fail", func(context.Context, *Args) (*Reply, error) { return nil, anser.NotFound })
		run(t, s, network.Listen("a:1"))
		p := rawClient(t, network, "a:1")
		request := func(id uint64, method uint32, flags wire.Flags, payload string) []byte {
			return wire.AppendRequest(nil, id, flags, &wire.Request{Method: method, Codec: codec.JSONID, Payload: []byte(payload)})
		}
		p.Send(wire.AppendMethod(nil, 1, "Arith.Mul"), wire.AppendMethod(nil, 2, "Arith.Fail"), wire.AppendMethod(nil, 3, "Arith.None"),
			request(1, 1, 0, `{"A":7,"B":8}`),
			request(2, 1, 0, `{"A":`),
			request(3, 2, 0, `{}`),
			request(4, 2, wire.FlagOneway, `{}`),
			request(5, 1, wire.FlagOneway, `{}`),
			request(6, 3, 0, `{}`),
			request(7, 3, wire.FlagOneway, `{}`),
			wirepeer.Request(8, 1, nil))
		for _, id := range []uint64{1, 2, 3, 6, 8} {
			if f, err := p.Next(); f.ID != id || err != nil {
				t.Fatal(f.ID, err)
			}
		}
		synctest.Wait()
		st := s.Stats()
		if st.Refused != 4 { // 2, 6, 7, and 8, whose codec does not fit
			t.Errorf("%d calls refused, want 4", st.Refused)
		}
		if got := st.Methods["Arith.Mul"]; got != (anser.MethodStats{Calls: 2, Refused: 2}) {
			t.Errorf("Arith.Mul: %+v", got)
		}
		if got := st.Methods["Arith.Fail"]; got != (anser.MethodStats{Calls: 2, Failed: 2}) {
			t.Errorf("Arith.Fail: %+v", got)
		}
	})
}
