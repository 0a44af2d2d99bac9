package anser_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A client that gives up 100,000 calls per second, far more than the rate of CANCEL frames that a
// server accepts, loses no connection and no other call.
func TestManyCallsGivenUp(t *testing.T) {
	const each, rounds, pause = 1000, 100, 10 * time.Millisecond // 100,000 calls a second
	for name, giveUp := range map[string]struct {
		cancel  bool
		timeout time.Duration
	}{"cancelled": {true, time.Minute}, "out of time": {false, pause}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := anser.NewServer(silent, anser.MaxInFlight(100_000))
				anser.Handle(s, "Echo.Wait", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}, anser.Concurrent())
				anser.Handle(s, "Echo.Say", echo)
				run(t, s, network.Listen("a:1"))
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				for range rounds {
					ctx, cancel := context.WithCancel(context.Background())
					futures := make([]*anser.Future[[]byte], each)
					for i := range futures {
						futures[i] = anser.Go[[]byte](ctx, c, "Echo.Wait", text("x"), anser.Timeout(giveUp.timeout))
					}
					if out, err := call(context.Background(), c, "Echo.Say", "good"); out != "good" || err != nil {
						t.Fatal(out, err)
					}
					time.Sleep(pause)
					if giveUp.cancel {
						cancel()
					}
					for _, f := range futures {
						_, err := f.Wait()
						switch anser.CodeOf(err) {
						case anser.Canceled, anser.DeadlineExceeded:
						default:
							t.Fatal(err)
						}
					}
					cancel()
				}
				if st := s.Stats(); len(st.Closed) != 0 || st.Refused != 0 {
					t.Errorf("connections closed: %v, calls refused: %d", st.Closed, st.Refused)
				}
				time.Sleep(10 * time.Second) // the delayed CANCELs are sent
				if n := s.Stats().InFlight; n != 0 {
					t.Errorf("%d calls still run that nobody waits for", n)
				}
			})
		})
	}
}

// A call whose deadline has passed is not cancelled, since the server knows the deadline. A call
// that is given up earlier is.
func TestNoCancelAfterTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var cancelled atomic.Uint64
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			for {
				f, err := p.NextOf(wire.TypeCancel)
				if err != nil {
					return
				}
				cancelled.Store(f.ID)
			}
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		short, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		f := anser.Go[[]byte](short, c, "Echo.Say", text("x"))
		_, err := call(context.Background(), c, "Echo.Say", "x", anser.Timeout(time.Second))
		wantFault(t, err, anser.DeadlineExceeded, anser.OutcomeUnknown)
		_, err = call(short, c, "Echo.Say", "x")
		wantFault(t, err, anser.DeadlineExceeded, anser.NotSent)
		_, err = f.Wait()
		wantFault(t, err, anser.DeadlineExceeded, anser.OutcomeUnknown)
		time.Sleep(time.Second)
		if id := cancelled.Load(); id != 0 {
			t.Fatalf("CANCEL of the call %d, whose time is over", id)
		}
		f = anser.Go[[]byte](context.Background(), c, "Echo.Say", text("x"))
		f.Cancel()
		time.Sleep(time.Second)
		if id := cancelled.Load(); id != 3 {
			t.Fatalf("CANCEL of the call %d, want 3", id)
		}
	})
}

// CANCELs that the server would take for a flood are delayed, and dropped if the server answers
// the call meanwhile.
func TestCancelsWaitForTheirTurn(t *testing.T) {
	const calls, maxCalls = 10_900, 10_000 // too few to make the client connect again
	for name, answers := range map[string]bool{"answered": true, "not answered": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var requests, cancels atomic.Int64
				rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
					seen := make(map[uint64]bool)
					for {
						f, err := p.Next()
						if err != nil {
							return
						}
						switch f.Type {
						case wire.TypeRequest:
							seen[f.ID] = true
							if requests.Add(1) == calls+2 && answers {
								for id := range seen {
									p.Send(wirepeer.Reply(id, nil))
								}
							}
						case wire.TypeCancel:
							cancels.Add(1)
							delete(seen, f.ID)
						}
					}
				})
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
				if err := anser.Send(context.Background(), c, "Echo.Say", text("x")); err != nil { // connects
					t.Fatal(err)
				}
				var futures []*anser.Future[[]byte]
				for range calls {
					f := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("x"), anser.Timeout(time.Hour))
					f.Cancel() // no call stays open for long
					futures = append(futures, f)
				}
				if err := anser.Send(context.Background(), c, "Echo.Say", text("x")); err != nil { // is answered with all
					t.Fatal(err)
				}
				for _, f := range futures {
					_, err := f.Wait()
					wantFault(t, err, anser.Canceled, anser.OutcomeUnknown)
				}
				time.Sleep(time.Second)
				if n, want := cancels.Load(), int64(calls); !answers && n != want {
					t.Errorf("%d cancels, want %d", n, want)
				}
				if n := cancels.Load(); answers && n != maxCalls {
					t.Errorf("%d cancels of which %d had room at once, although all calls were answered", n, maxCalls)
				}
			})
		})
	}
}
