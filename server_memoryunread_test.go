package anser_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// Sizes of replies: one that is copied into the buffer of its connection, one that is written from
// its own, and one that is lent.
var unreadSizes = []int{10_000, 100_000, 900_000}

// unreadServer is a server with Echo.Large, whose replies have a size. Its handlers wait for
// release, if that is not nil. begun is how many have begun.
func unreadServer(t *testing.T, network *ansertest.Network, address string, size, memory int, release <-chan struct{}) (s *anser.Server, begun *atomic.Int64) {
	t.Helper()
	begun = new(atomic.Int64)
	s = anser.NewServer(silent, anser.MaxMessage(1<<20), anser.MaxMemory(memory))
	anser.Handle(s, "Echo.Say", echo, anser.Concurrent())
	anser.Handle(s, "Echo.Large", func(context.Context, *[]byte) (*[]byte, error) {
		begun.Add(1)
		if release != nil {
			<-release
		}
		reply := make([]byte, size)
		return &reply, nil
	}, anser.Concurrent())
	run(t, s, network.Listen(address))
	return s, begun
}

// unreadAnswers reads the answers of calls, and returns how many are replies of the size. The rest
// must be errors which say that the reply was dropped.
func unreadAnswers(t *testing.T, p *wirepeer.Peer, calls, size int) (replies int) {
	t.Helper()
	for range calls {
		f, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == wire.TypeReply {
			if r, err := wire.ParseReply(f.Flags, f.Body); err != nil || len(r.Payload) != size {
				t.Fatalf("a reply of %d bytes, %v", len(r.Payload), err)
			}
			replies++
			continue
		}
		e, err := wire.ParseError(f.Flags, f.Body)
		if e.Code != wire.ResourceExhausted || anser.Outcome(e.Outcome) != anser.Executed || !strings.Contains(e.Message, "dropped") || err != nil {
			t.Fatalf("%s: %+v, %v", f.Type, e, err)
		}
	}
	return replies
}

// fillUnread makes calls of method 1, whose replies are not read, until further handlers wait, and
// returns how many.
func fillUnread(s *anser.Server, p *wirepeer.Peer, memory int64) (calls uint64) {
	for s.Stats().Memory < memory/4 {
		calls++
		p.Send(wirepeer.Request(calls, 1, nil))
		synctest.Wait()
	}
	return calls
}

// endAtOnce makes calls of method 1, whose handlers end together, and returns when the client
// counts as one that does not read, and replies that have waited since are dropped.
func endAtOnce(t *testing.T, p *wirepeer.Peer, calls int64, begun *atomic.Int64, release chan<- struct{}) {
	t.Helper()
	for id := range uint64(calls) {
		p.Send(wirepeer.Request(id+1, 1, nil))
	}
	synctest.Wait()
	if n := begun.Load(); n != calls {
		t.Fatalf("%d handlers run, want all", n)
	}
	close(release)
	time.Sleep(7 * time.Second) // in the bubble: more than twice the 3 s without a read
}

func memoryReturns(t *testing.T, s *anser.Server) {
	t.Helper()
	synctest.Wait()
	if st := s.Stats(); st.Memory != 0 || st.InFlight != 0 {
		t.Errorf("%d bytes are held by %d calls in the end", st.Memory, st.InFlight)
	}
}

// While a client leaves many bytes of replies unread, the handlers of its next calls do not begin,
// and those of other clients do. When it reads, all of its calls succeed.
func TestUnreadRepliesStopHandlers(t *testing.T) {
	const memory = 4 << 20
	for _, size := range unreadSizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			partsBubble(t, func(t *testing.T, network *ansertest.Network) {
				s, begun := unreadServer(t, network, "a:1", size, memory, nil)
				p, _ := partsPeer(t, network, false, false)
				p.Send(wire.AppendMethod(nil, 1, "Echo.Large"))
				calls := fillUnread(s, p, memory)
				before := begun.Load()
				for range 200 {
					calls++
					p.Send(wirepeer.Request(calls, 1, nil))
				}
				synctest.Wait()
				if n := begun.Load() - before; n > 0 {
					t.Errorf("%d handlers have begun while %d bytes are unread", n, s.Stats().Memory)
				}
				large := make([]byte, 1<<20)
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				if _, err := anser.Call[[]byte](t.Context(), c, "Echo.Say", &large); err != nil {
					t.Error(err)
				}
				if n := unreadAnswers(t, p, int(calls), size); n != int(calls) {
					t.Errorf("%d of %d calls have a reply", n, calls)
				}
				memoryReturns(t, s)
			})
		})
	}
}

// When the client goes, nothing of it is left, and no handler has waited for another one.
func TestUnreadRepliesOfALostConnection(t *testing.T) {
	const memory, size, calls = 4 << 20, 900_000, 500
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		s, begun := unreadServer(t, network, "a:1", size, memory, nil)
		p, _ := partsPeer(t, network, false, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Large"))
		for id := range uint64(calls) {
			p.Send(wirepeer.Request(id+1, 1, nil))
			if id < 5 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if n := begun.Load(); n > 5 {
			t.Errorf("%d handlers have begun", n)
		}
		began := time.Now()
		p.Close()
		memoryReturns(t, s)
		if n := time.Since(began); n > 0 {
			t.Errorf("the calls have ended %v later", n)
		}
	})
}

// A handler that has waited may itself wait for another call of its connection that did.
func TestUnreadRepliesOfDependentCalls(t *testing.T) {
	const memory, size = 4 << 20, 900_000
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent, anser.MaxMessage(1<<20), anser.MaxMemory(memory))
		all := make(chan struct{})
		var others atomic.Int64
		anser.Handle(s, "Echo.Large", func(_ context.Context, in *[]byte) (*[]byte, error) {
			if len(*in) > 0 {
				if others.Add(1) == 10 {
					close(all)
				}
				<-all
			}
			reply := make([]byte, size)
			return &reply, nil
		}, anser.Concurrent())
		run(t, s, network.Listen("a:1"))
		p, _ := partsPeer(t, network, false, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Large"))
		for id := range uint64(5) {
			p.Send(wirepeer.Request(id+1, 1, nil))
			synctest.Wait()
		}
		for id := range uint64(10) {
			p.Send(wirepeer.Request(id+6, 1, []byte("waits")))
		}
		synctest.Wait()
		if n := others.Load(); n > 0 {
			t.Fatalf("%d handlers have begun", n)
		}
		if n := unreadAnswers(t, p, 15, size); n < 5 {
			t.Errorf("%d replies", n)
		}
		memoryReturns(t, s)
	})
}

// Handlers that run already end with more replies than fit. Those are dropped, and there is memory
// for others.
func TestUnreadRepliesAreDropped(t *testing.T) {
	const memory, calls = 8 << 20, 900
	for _, size := range unreadSizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			partsBubble(t, func(t *testing.T, network *ansertest.Network) {
				release := make(chan struct{})
				s, begun := unreadServer(t, network, "a:1", size, memory, release)
				p, _ := partsPeer(t, network, false, false)
				p.Send(wire.AppendMethod(nil, 1, "Echo.Large"))
				endAtOnce(t, p, calls, begun, release)
				st := s.Stats()
				if st.Memory > memory/2 || st.LimitsHit["MaxMemory"] == 0 || st.Methods["Echo.Large"].Failed != st.LimitsHit["MaxMemory"] {
					t.Errorf("%d bytes are held, %v, %+v", st.Memory, st.LimitsHit, st.Methods["Echo.Large"])
				}
				large := make([]byte, 1<<20)
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				if _, err := anser.Call[[]byte](t.Context(), c, "Echo.Say", &large); err != nil {
					t.Error(err)
				}
				if n := unreadAnswers(t, p, calls, size); int64(calls-n) != st.LimitsHit["MaxMemory"] || n < memory/2/size {
					t.Errorf("%d replies, and %d were dropped", n, st.LimitsHit["MaxMemory"])
				}
				memoryReturns(t, s)
			})
		})
	}
}

// Many connections, of which none has much, hold twice the memory together, and one reply each
// besides.
func TestUnreadRepliesOfManyConnections(t *testing.T) {
	const memory, size, clients = 4 << 20, 900_000, 30
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		s, _ := unreadServer(t, network, "a:1", size, memory, release)
		var peers []*wirepeer.Peer
		for range clients {
			p, _ := partsPeer(t, network, false, false)
			p.Send(wire.AppendMethod(nil, 1, "Echo.Large"), wirepeer.Request(1, 1, nil), wirepeer.Request(2, 1, nil))
			peers = append(peers, p)
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if st := s.Stats(); st.Memory > 2*memory+(clients+1)*size || st.LimitsHit["MaxMemory"] < clients-2*memory/size-1 {
			t.Errorf("%d bytes are held, %v", st.Memory, st.LimitsHit)
		}
		for _, p := range peers {
			if n := unreadAnswers(t, p, 2, size); n == 0 {
				t.Error("a connection has no reply at all")
			}
		}
		memoryReturns(t, s)
	})
}

// What a gateway holds for a client that does not read is bounded too.
func TestUnreadForwardedReplies(t *testing.T) {
	const memory, size, calls = 8 << 20, 900_000, 100
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		_, begun := unreadServer(t, network, "b:1", size, 1<<30, release)
		up := dial(t, "b:1", anser.Dialer(network.Dial))
		front := anser.NewServer(silent, anser.MaxMessage(1<<20), anser.MaxMemory(memory),
			anser.Forward(func(context.Context, *anser.ForwardCall) (*anser.Client, string, error) { return up, "", nil }))
		run(t, front, network.Listen("a:1"))
		p, _ := partsPeer(t, network, false, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Large"))
		endAtOnce(t, p, calls, begun, release)
		st := front.Stats()
		if st.Memory > memory/2 || st.LimitsHit["MaxMemory"] == 0 {
			t.Errorf("%d bytes are held, %v", st.Memory, st.LimitsHit)
		}
		if n := unreadAnswers(t, p, calls, size); int64(calls-n) != st.LimitsHit["MaxMemory"] {
			t.Errorf("%d replies, and %d were dropped", n, st.LimitsHit["MaxMemory"])
		}
		memoryReturns(t, front)
	})
}

// A client that reads may have more replies waiting than half of the memory: all of its calls
// succeed, although all handlers have ended at once.
func TestUnreadRepliesOfAReadingClient(t *testing.T) {
	const memory = 8 << 20
	for _, size := range unreadSizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			partsBubble(t, func(t *testing.T, network *ansertest.Network) {
				release := make(chan struct{})
				s, begun := unreadServer(t, network, "a:1", size, memory, release)
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				calls := memory * 3 / 2 / size
				var all sync.WaitGroup
				for range calls {
					all.Go(func() {
						if r, err := anser.Call[[]byte](t.Context(), c, "Echo.Large", new([]byte)); err != nil || len(*r) != size {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				if n := begun.Load(); n != int64(calls) {
					t.Fatalf("%d handlers run, want all", n)
				}
				close(release)
				all.Wait()
				memoryReturns(t, s)
			})
		})
	}
}

// Calls of a method that has no large replies do not wait until the client has read those of
// another one.
func TestSmallCallsPassUnreadReplies(t *testing.T) {
	const memory, size = 4 << 20, 900_000
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		s, _ := unreadServer(t, network, "a:1", size, memory, nil)
		ran := make(chan struct{}, 1)
		anser.Handle(s, "Echo.Small", func(context.Context, *[]byte) (*[]byte, error) {
			ran <- struct{}{}
			return text("small"), nil
		}, anser.Concurrent())
		p, _ := partsPeer(t, network, false, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Large"), wire.AppendMethod(nil, 2, "Echo.Small"))
		calls := fillUnread(s, p, memory)
		p.Send(wirepeer.Request(calls+1, 2, nil))
		synctest.Wait()
		if len(ran) != 1 {
			t.Error("a call with a small reply has waited")
		}
		p.Close()
		memoryReturns(t, s)
	})
}

// Calls that wait until their client reads take no place of the limits of their method: other
// clients can call it.
func TestUnreadRepliesTakeNoPlace(t *testing.T) {
	const memory, size, limit = 4 << 20, 900_000, 20
	for name, option := range map[string]anser.ServerHandleOption{
		"MaxInFlight":   anser.MaxInFlight(limit),
		"AdaptiveLimit": anser.AdaptiveLimit(1, limit),
	} {
		t.Run(name, func(t *testing.T) {
			partsBubble(t, func(t *testing.T, network *ansertest.Network) {
				s := anser.NewServer(silent, anser.MaxMessage(1<<20), anser.MaxMemory(memory))
				anser.Handle(s, "Echo.Large", func(_ context.Context, in *[]byte) (*[]byte, error) {
					reply := make([]byte, size)
					return &reply, nil
				}, anser.Concurrent(), option)
				run(t, s, network.Listen("a:1"))
				p, _ := partsPeer(t, network, false, false)
				p.Send(wire.AppendMethod(nil, 1, "Echo.Large"))
				calls := fillUnread(s, p, memory)
				for range limit {
					calls++
					p.Send(wirepeer.Request(calls, 1, nil))
					synctest.Wait()
				}
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Attempts(1))
				for range 2 * limit {
					if _, err := anser.Call[[]byte](t.Context(), c, "Echo.Large", new([]byte)); err != nil {
						t.Fatal(err)
					}
				}
				if n := unreadAnswers(t, p, int(calls), size); n != int(calls) {
					t.Errorf("%d of %d calls have a reply", n, calls)
				}
				memoryReturns(t, s)
			})
		})
	}
}
