package anser_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// service is a group of raw servers that answer as a test says, and record the addresses that were
// asked.
type service struct {
	mu    sync.Mutex
	asked []string // addresses, in order
	times []time.Time
	tries []uint8 // the attempt numbers of the requests
}

// serve runs servers at the addresses. answer gets the address and the number of earlier requests.
func (s *service) serve(t *testing.T, network *ansertest.Network, answer func(p *wirepeer.Peer, request wirepeer.Frame, address string, before int), addresses ...string) {
	for _, address := range addresses {
		rawServer(t, network.Listen(address), func(p *wirepeer.Peer) {
			for {
				f, err := p.NextOf(wire.TypeRequest)
				if err != nil {
					return
				}
				var r wire.Request
				wire.ParseRequest(f.Flags, f.Body, &r)
				s.mu.Lock()
				before := len(s.asked)
				s.asked = append(s.asked, address)
				s.times = append(s.times, time.Now())
				s.tries = append(s.tries, r.Attempt)
				s.mu.Unlock()
				answer(p, f, address, before)
			}
		})
	}
}

// tell returns the addresses that were asked and forgets them.
func (s *service) tell() (asked []string, tries []uint8, gaps []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, tries = s.asked, s.tries
	for i := 1; i < len(s.times); i++ {
		gaps = append(gaps, s.times[i].Sub(s.times[i-1]))
	}
	s.asked, s.tries, s.times = nil, nil, nil
	return asked, tries, gaps
}

// different reports whether no address occurs twice.
func different(asked []string) bool {
	sorted := slices.Sorted(slices.Values(asked))
	return len(slices.Compact(sorted)) == len(asked)
}

// drop loses the connection, so that the outcome of its call is unknown.
func drop(p *wirepeer.Peer, _ wirepeer.Frame, _ string, _ int) { p.Close() }

// refuse refuses with the code.
func refuse(code wire.Code, retryAfter uint32) func(*wirepeer.Peer, wirepeer.Frame, string, int) {
	return func(p *wirepeer.Peer, f wirepeer.Frame, _ string, _ int) {
		p.Send(wirepeer.Fault(f.ID, wire.ErrorBody{Code: code, Outcome: wire.Refused, Message: "refused", RetryAfter: retryAfter}))
	}
}

// execute answers as a handler that returned the code.
func execute(code wire.Code) func(*wirepeer.Peer, wirepeer.Frame, string, int) {
	return func(p *wirepeer.Peer, f wirepeer.Frame, _ string, _ int) {
		p.Send(wirepeer.Fault(f.ID, wire.ErrorBody{Code: code, Outcome: wire.Executed, Message: "failed"}))
	}
}

// How often a call is sent, to which instances, and what its caller sees.
func TestRetries(t *testing.T) {
	const three = "tcp://a:1,b:1,c:1"
	for name, test := range map[string]struct {
		answer  func(*wirepeer.Peer, wirepeer.Frame, string, int)
		target  string
		opts    []anser.CallOption
		sent    int
		same    bool // all attempts go to one instance
		code    anser.Code
		outcome anser.Outcome
	}{
		"unknown, plain":                        {drop, three, nil, 1, false, anser.Unavailable, anser.OutcomeUnknown},
		"unknown, idempotent":                   {drop, three, []anser.CallOption{anser.Idempotent()}, 3, false, anser.Unavailable, anser.OutcomeUnknown},
		"unknown, five attempts":                {drop, three, []anser.CallOption{anser.Idempotent(), anser.Attempts(5)}, 5, false, anser.Unavailable, anser.OutcomeUnknown},
		"unknown, one attempt":                  {drop, three, []anser.CallOption{anser.Idempotent(), anser.Attempts(1)}, 1, false, anser.Unavailable, anser.OutcomeUnknown},
		"unknown, failfast":                     {drop, three, []anser.CallOption{anser.Idempotent(), anser.WithFailMode(anser.Failfast)}, 1, false, anser.Unavailable, anser.OutcomeUnknown},
		"unknown, failtry":                      {drop, three, []anser.CallOption{anser.Idempotent(), anser.WithFailMode(anser.Failtry)}, 3, true, anser.Unavailable, anser.OutcomeUnknown},
		"unknown, plain, failtry":               {drop, three, []anser.CallOption{anser.WithFailMode(anser.Failtry)}, 1, false, anser.Unavailable, anser.OutcomeUnknown},
		"refused":                               {refuse(wire.Unavailable, 0), three, nil, 2, false, anser.Unavailable, anser.Refused},
		"refused, unknown method":               {refuse(wire.Unimplemented, 0), three, nil, 2, false, anser.Unimplemented, anser.Refused},
		"refused, never":                        {refuse(wire.Unavailable, wire.RetryNever), three, nil, 1, false, anser.Unavailable, anser.Refused},
		"refused, failfast":                     {refuse(wire.Unavailable, 0), three, []anser.CallOption{anser.WithFailMode(anser.Failfast)}, 1, false, anser.Unavailable, anser.Refused},
		"refused, unknown method, one instance": {refuse(wire.Unimplemented, 0), "a:1", nil, 1, false, anser.Unimplemented, anser.Refused},
		"refused, expired":                      {refuse(wire.DeadlineExceeded, 0), three, nil, 1, false, anser.DeadlineExceeded, anser.Refused},
		"overload":                              {refuse(wire.ResourceExhausted, 0), three, nil, 3, false, anser.ResourceExhausted, anser.Refused},
		"overload, one instance":                {refuse(wire.ResourceExhausted, 0), "a:1", nil, 3, true, anser.ResourceExhausted, anser.Refused},
		"executed":                              {execute(wire.Unavailable), three, nil, 1, false, anser.Unavailable, anser.Executed},
		"executed, idempotent":                  {execute(wire.Unavailable), three, []anser.CallOption{anser.Idempotent()}, 1, false, anser.Unavailable, anser.Executed},
		"executed, listed":                      {execute(wire.Aborted), three, []anser.CallOption{anser.Idempotent(), anser.RetryOn(anser.Aborted)}, 3, false, anser.Aborted, anser.Executed},
		"executed, listed, plain":               {execute(wire.Aborted), three, []anser.CallOption{anser.RetryOn(anser.Aborted)}, 1, false, anser.Aborted, anser.Executed},
		"executed, deadline listed":             {execute(wire.DeadlineExceeded), three, []anser.CallOption{anser.Idempotent(), anser.RetryOn(anser.DeadlineExceeded)}, 3, false, anser.DeadlineExceeded, anser.Executed},
		"executed, another is listed":           {execute(wire.Aborted), three, []anser.CallOption{anser.Idempotent(), anser.RetryOn(anser.NotFound)}, 1, false, anser.Aborted, anser.Executed},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var s service
				s.serve(t, network, test.answer, "a:1", "b:1", "c:1")
				c := dial(t, test.target, anser.Dialer(network.Dial))
				_, err := call(context.Background(), c, "Echo.Say", "", test.opts...)
				e := wantFault(t, err, test.code, test.outcome)
				asked, tries, _ := s.tell()
				if len(asked) != test.sent {
					t.Errorf("sent %d times, want %d: %v", len(asked), test.sent, asked)
				}
				for i, n := range tries {
					if int(n) != i {
						t.Errorf("the attempts have the numbers %v", tries)
						break
					}
				}
				switch {
				case test.same && len(slices.Compact(asked)) != 1:
					t.Errorf("asked %v, want the same instance", asked)
				case !test.same && len(asked) <= 3 && !different(asked):
					t.Errorf("asked %v, want another instance each time", asked)
				}
				if test.sent > 1 && len(e.Attempts) < test.sent {
					t.Errorf("%d attempts in the error, want %d", len(e.Attempts), test.sent)
				}
			})
		})
	}
}

// A request that every instance would refuse says nothing about the instance that refused it: the
// balancer must not treat it as slow.
func TestRefusedRequestsDoNotCountAgainstAnInstance(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*wirepeer.Peer, wirepeer.Frame, string, int)
		in     string
		counts bool
	}{
		"malformed":   {refuse(wire.InvalidArgument, 0), "", false},
		"not allowed": {refuse(wire.PermissionDenied, 0), "", false},
		"not known":   {refuse(wire.UnauthenticatedCall, 0), "", false},
		"never":       {refuse(wire.ResourceExhausted, wire.RetryNever), "", false},
		"too large":   {refuse(wire.ResourceExhausted, 0), strings.Repeat("x", 5<<20), false},
		"overload":    {refuse(wire.ResourceExhausted, 0), "", true},
		"draining":    {refuse(wire.Unavailable, 0), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var s service
				s.serve(t, network, test.answer, "a:1", "b:1")
				c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial))
				for range 20 {
					_, err := call(context.Background(), c, "Echo.Say", test.in, anser.Attempts(1))
					fault(t, err)
				}
				var worst time.Duration
				for _, in := range c.Status().Instances {
					worst = max(worst, in.Latency)
				}
				if counts := worst > time.Millisecond; counts != test.counts {
					t.Errorf("a latency of %v", worst)
				}
			})
		})
	}
}

// A call that finally succeeds returns no error, and no instance is asked twice while another is
// left.
func TestFailover(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, func(p *wirepeer.Peer, f wirepeer.Frame, _ string, before int) {
			if before < 2 {
				p.Close()
				return
			}
			p.Send(wirepeer.Reply(f.ID, []byte("ok")))
		}, "a:1", "b:1", "c:1")
		c := dial(t, "tcp://a:1,b:1,c:1", anser.Dialer(network.Dial))
		if out, err := call(context.Background(), c, "Echo.Say", "", anser.Idempotent()); out != "ok" || err != nil {
			t.Fatal(out, err)
		}
		if asked, _, _ := s.tell(); len(asked) != 3 || !different(asked) {
			t.Error(asked)
		}
	})
}

// An unreachable instance costs only time, even for a method that is not idempotent.
func TestDeadInstancesAreAvoided(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("c:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "tcp://a:1,b:1,c:1", anser.Dialer(network.Dial), anser.RetryBudget(0, 0))
		for range 50 {
			if _, err := call(context.Background(), c, "Echo.Say", "", anser.Attempts(1)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A call waits for an instance that is about to start, also one at a fixed address.
func TestCallWaitsForAnInstance(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"))
		time.Sleep(1500 * time.Millisecond)
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		began := time.Now()
		if _, err := reply.Wait(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 1500*time.Millisecond {
			t.Errorf("the call noticed the server after %v", d)
		}
	})
}

// Idempotency is learned from the first answer, even if it is an error.
func TestIdempotentIsLearned(t *testing.T) {
	for name, first := range map[string]func(f wirepeer.Frame) []byte{
		"reply": func(f wirepeer.Frame) []byte {
			return wire.AppendReplyHead(nil, f.ID, wire.FlagIdempotent, 1, 0, nil)
		},
		"error": func(f wirepeer.Frame) []byte {
			return wire.AppendError(nil, f.ID, wire.FlagIdempotent, &wire.ErrorBody{Code: wire.NotFound, Outcome: wire.Executed})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var s service
				var answers atomic.Bool
				s.serve(t, network, func(p *wirepeer.Peer, f wirepeer.Frame, _ string, _ int) {
					if answers.Load() {
						p.Send(first(f))
						return
					}
					p.Close()
				}, "a:1", "b:1")
				c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial))
				_, err := call(context.Background(), c, "Echo.Say", "")
				wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
				answers.Store(true)
				call(context.Background(), c, "Echo.Say", "")
				answers.Store(false)
				if asked, _, _ := s.tell(); len(asked) != 2 {
					t.Errorf("sent %d times, want once for each call", len(asked))
				}
				_, err = call(context.Background(), c, "Echo.Say", "")
				wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
				if asked, _, _ := s.tell(); len(asked) != 3 {
					t.Errorf("sent %d times, want 3", len(asked))
				}
				_, err = call(context.Background(), c, "Echo.Other", "")
				wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
				if asked, _, _ := s.tell(); len(asked) != 1 {
					t.Errorf("another method was sent %d times, want once", len(asked))
				}
			})
		})
	}
}

// Calls that were refused together with the same advice do not come back together.
func TestAdviceIsNotARendezvous(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		const calls, advice = 50, 700 * time.Millisecond
		var s service
		s.serve(t, network, func(p *wirepeer.Peer, f wirepeer.Frame, address string, before int) {
			if before < calls {
				refuse(wire.ResourceExhausted, uint32(advice.Milliseconds()))(p, f, address, before)
				return
			}
			p.Send(wirepeer.Reply(f.ID, nil))
		}, "a:1")
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.RetryBudget(1, 0))
		began := time.Now()
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		when := make(map[time.Duration]int)
		for _, at := range s.times[calls:] {
			d := at.Sub(began)
			if d < advice || d > advice+60*time.Millisecond {
				t.Errorf("a second attempt after %v", d)
			}
			when[d.Truncate(10*time.Millisecond)]++
		}
		for d, n := range when {
			if n > calls/2 {
				t.Errorf("%d of %d calls came back within 10 ms, %v after the first attempt", n, calls, d)
			}
		}
	})
}

// The advice of a server to wait is heeded, and overload is met with jittered waits.
func TestWaitsBetweenAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, refuse(wire.ResourceExhausted, 700), "a:1", "b:1", "c:1")
		c := dial(t, "tcp://a:1,b:1,c:1", anser.Dialer(network.Dial))
		_, err := call(context.Background(), c, "Echo.Say", "")
		if e := wantFault(t, err, anser.ResourceExhausted, anser.Refused); e.RetryAfter != 700*time.Millisecond {
			t.Errorf("advice of %v", e.RetryAfter)
		}
		_, _, gaps := s.tell()
		if len(gaps) != 2 {
			t.Fatal(gaps)
		}
		for _, g := range gaps {
			if g < 700*time.Millisecond {
				t.Errorf("waited %v, the server asked for 700 ms", g)
			}
		}
	})
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, refuse(wire.ResourceExhausted, 0), "a:1")
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.RetryBudget(0, 1e6))
		seen := map[time.Duration]bool{}
		for range 20 {
			_, err := call(context.Background(), c, "Echo.Say", "", anser.Attempts(5))
			wantFault(t, err, anser.ResourceExhausted, anser.Refused)
			_, _, gaps := s.tell()
			if len(gaps) != 4 {
				t.Fatal(gaps)
			}
			for i, g := range gaps {
				if limit := 50*time.Millisecond<<i + time.Millisecond; g <= 0 || g > limit {
					t.Errorf("waited %v before attempt %d, want up to %v", g, i+1, limit)
				}
				seen[g] = true
			}
		}
		if len(seen) < 60 {
			t.Errorf("%d different waits of 80: no jitter", len(seen))
		}
	})
}

// Retries are bounded by the budget, shared by the calls of a client; those of calls that were not
// sent are free.
func TestBudgetBoundsRetries(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, execute(wire.Aborted), "a:1")
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		const calls = 500
		for range calls {
			_, err := call(context.Background(), c, "Echo.Say", "", anser.Idempotent(), anser.RetryOn(anser.Aborted))
			wantFault(t, err, anser.Aborted, anser.Executed)
		}
		asked, _, gaps := s.tell()
		spent := time.Duration(0)
		for _, g := range gaps {
			spent += g
		}
		retries := len(asked) - calls
		if most := calls/5 + 10 + int(10*spent.Seconds()) + 2; retries > most {
			t.Errorf("%d retries of %d calls in %v, want %d at most", retries, calls, spent, most)
		}
		if retries < calls/5 {
			t.Errorf("only %d retries of %d calls", retries, calls)
		}
	})
}

// A server that serves a second attempt does not let its own calls be tried again.
func TestChainOfRetriesStops(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var below service
		below.serve(t, network, execute(wire.Aborted), "b:1")
		second := dial(t, "b:1", anser.Dialer(network.Dial), anser.Idempotent(), anser.RetryOn(anser.Aborted))
		var asked []int
		serve(t, network.Listen("a:1"), map[string]handler{
			"First.Hop": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				derived, cancel := context.WithTimeout(context.WithValue(ctx, keyOfTheUser{}, 1), time.Minute)
				defer cancel()
				_, err := anser.Call[[]byte](derived, second, "Second.Hop", in)
				got, _, _ := below.tell()
				asked = append(asked, len(got))
				return nil, anser.CodeOf(err) // a new error: one passed on from the call below would say not to retry
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		_, err := call(context.Background(), c, "First.Hop", "", anser.Idempotent(), anser.RetryOn(anser.Aborted))
		wantFault(t, err, anser.Aborted, anser.Executed)
		if !slices.Equal(asked, []int{3, 1, 1}) {
			t.Errorf("the attempts sent %v calls of their own, want 3, 1, 1", asked)
		}
	})
}

// A caller that gives up during the wait for the next attempt does not wait on.
func TestCancelBetweenAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, refuse(wire.ResourceExhausted, 5000), "a:1")
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		ctx, cancel := context.WithCancel(context.Background())
		reply := anser.Go[[]byte](ctx, c, "Echo.Say", text(""))
		time.Sleep(time.Second)
		cancel()
		began := time.Now()
		_, err := reply.Wait()
		e := wantFault(t, err, anser.Canceled, anser.Refused)
		if !errors.Is(err, context.Canceled) || !strings.HasSuffix(e.Message, "before another attempt; the last one: refused") {
			t.Error(err)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("waited %v", d)
		}
	})
}

// If a handler passes on an error from a call whose retries failed, or had no budget, the call
// above it is not retried.
func TestRetriesInVainAreToldUpwards(t *testing.T) {
	for name, test := range map[string]struct {
		opts  []anser.DialOption // of the middle
		below int
		never bool
	}{
		"tried in vain":         {[]anser.DialOption{anser.Idempotent(), anser.RetryOn(anser.Aborted)}, 3, true},
		"no budget":             {[]anser.DialOption{anser.Idempotent(), anser.RetryOn(anser.Aborted), anser.RetryBudget(0, 0)}, 1, true},
		"not tried again there": {nil, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var below service
				below.serve(t, network, execute(wire.Aborted), "b:1")
				second := dial(t, "b:1", append(test.opts, anser.Dialer(network.Dial))...)
				serve(t, network.Listen("a:1"), map[string]handler{
					"First.Hop": func(ctx context.Context, in *[]byte) (*[]byte, error) {
						return anser.Call[[]byte](ctx, second, "Second.Hop", in)
					},
				})
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				_, err := call(context.Background(), c, "First.Hop", "", anser.Idempotent(), anser.RetryOn(anser.Aborted))
				e := wantFault(t, err, anser.Aborted, anser.Executed)
				if asked, _, _ := below.tell(); len(asked) != test.below || (e.RetryAfter == anser.RetryNever) != test.never {
					t.Errorf("the bottom got %d calls, advice %v; want %d, never: %t", len(asked), e.RetryAfter, test.below, test.never)
				}
			})
		})
	}
}

// keyOfTheUser is a key of a context that Anser knows nothing of.
type keyOfTheUser struct{}
