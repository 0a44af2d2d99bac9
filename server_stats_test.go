package anser_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
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

// With several processors the connections count in different places. The limit holds for all of
// them together: none is refused while there is room, and none runs beyond it.
func TestLimitOfManyConnections(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		const conns, each, room = 6, 10, 23
		release := make(chan struct{})
		s := anser.NewServer(silent, anser.MaxInFlight(room))
		anser.Handle(s, "Test.Wait", func(context.Context, *Args) (*Reply, error) {
			<-release
			return new(Reply), nil
		}, anser.Concurrent())
		run(t, s, network.Listen("a:1"))
		var clients []*anser.Client
		for range conns {
			clients = append(clients, dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.WithFailMode(anser.Failfast)))
		}
		for range 3 { // the places that were given back are there again, for any connection
			var ran, refused atomic.Int64
			var wg sync.WaitGroup
			for i := range conns * each {
				wg.Go(func() {
					_, err := anser.Call[Reply](t.Context(), clients[i%conns], "Test.Wait", new(Args))
					switch {
					case err == nil:
						ran.Add(1)
					case errors.Is(err, anser.ResourceExhausted):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			if st := s.Stats(); st.InFlight != room || refused.Load() != conns*each-room {
				t.Errorf("%d calls in flight and %d refused, want %d and %d", st.InFlight, refused.Load(), room, conns*each-room)
			}
			for range room {
				release <- struct{}{}
			}
			wg.Wait()
			synctest.Wait()
			if st := s.Stats(); st.InFlight != 0 || ran.Load() != room {
				t.Errorf("%d calls in flight and %d ran, want 0 and %d", st.InFlight, ran.Load(), room)
			}
		}
		if st := s.Stats().Methods["Test.Wait"]; st.Calls != 3*room || st.Refused != 3*(conns*each-room) {
			t.Errorf("%+v", st)
		}
	})
}

// Calls of many connections at the same time are all counted, on workers and on reader goroutines.
func TestCallsOfManyConnectionsAreCounted(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	s := anser.NewServer(silent)
	anser.Handle(s, "Arith.Mul", mul)
	anser.Handle(s, "Arith.Other", mul, anser.Concurrent())
	l := listen(t)
	run(t, s, l)
	const conns, each = 4, 2000
	var wg sync.WaitGroup
	for range conns {
		c := dial(t, l.Addr().String(), anser.Conns(1), anser.Dialer(new(net.Dialer).DialContext))
		wg.Go(func() {
			for range each {
				for _, method := range []string{"Arith.Mul", "Arith.Other"} {
					if _, err := anser.Call[Reply](t.Context(), c, method, new(Args)); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "nothing is in flight", func() bool { return s.Stats().InFlight == 0 })
	for _, method := range []string{"Arith.Mul", "Arith.Other"} {
		if st := s.Stats().Methods[method]; st.Calls != conns*each {
			t.Errorf("%s: %d calls counted, want %d", method, st.Calls, conns*each)
		}
	}
}
