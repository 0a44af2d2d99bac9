package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// loadOptions are what a load is.
type loadOptions struct {
	Callers int
	Rate    float64 // calls/s of all callers together
	// Again is how often a naive client repeats a call at once after an error of its framework.
	// Each is a call of its own, due when the first one was.
	Again int
	// Offset delays the first call by a part, from 0 to 1, of the time between the calls of two
	// callers, so that processes do not all call at once.
	Offset float64
	Open   int // calls that are open at most; one that is due later waits, and counts from when it was due
}

// maxOpen is how many calls of all processes of a load are open at most.
const maxOpen = 20_000

// load makes calls when they are due, whatever the results of earlier ones: every other one is
// idempotent.
type load struct {
	client *client
	o      loadOptions
	rate   atomic.Uint64 // bits of a float64
	cancel context.CancelFunc
	begun  sync.WaitGroup // callers
	open   sync.WaitGroup // calls
	room   chan struct{}

	shards []shard // one for each caller

	paused atomic.Int64 // the longest time for which this process did not get to run, in nanoseconds

	samples sampler
}

// shard is what one caller's calls were.
type shard struct {
	mu    sync.Mutex // guards calls
	calls []ledger.Call
}

// sampler keeps the errors that calls have. It is safe for concurrent use.
type sampler struct {
	mu    sync.Mutex // guards kinds
	kinds map[string]sample
}

// sample is an error that calls had.
type sample struct {
	Kind  string    // its code and outcome, with the protocol if there are several
	At    time.Time // of the first
	Count int
	Text  string // of the first
}

// line says how many calls had the error, and what the first one was.
func (s *sample) line(began time.Time) string {
	return fmt.Sprintf("%d calls (%s), the first after %.1f s: %s", s.Count, s.Kind, s.At.Sub(began).Seconds(), s.Text)
}

// loaded is what a load answers when it has stopped.
type loaded struct {
	Calls   int
	Paused  time.Duration // the longest time for which the client's process did not get to run
	Samples []sample
}

func newLoad(c *client, o loadOptions) *load {
	l := &load{client: c, o: o, shards: make([]shard, o.Callers), room: make(chan struct{}, cmp.Or(o.Open, maxOpen))}
	l.setRate(o.Rate)
	return l
}

func (l *load) setRate(rate float64) { l.rate.Store(math.Float64bits(rate)) }

// interval is the time between two calls of one caller.
func (l *load) interval() time.Duration {
	return time.Duration(float64(time.Second) * float64(l.o.Callers) / math.Float64frombits(l.rate.Load()))
}

// first is how long after the beginning the first call of a caller is due.
func (l *load) first(caller int) time.Duration {
	return time.Duration(float64(l.interval()) * (float64(caller) + l.o.Offset) / float64(l.o.Callers))
}

func (l *load) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.begun.Go(func() { l.watchPauses(ctx) })
	began := time.Now()
	for i := range l.o.Callers {
		l.begun.Go(func() { l.run(ctx, i, began.Add(l.first(i))) })
	}
}

// watchPauses notes how late a timer is. A machine that is busy with other things makes every
// figure worse.
func (l *load) watchPauses(ctx context.Context) {
	const every = 50 * time.Millisecond // 64 processes that wake more often would be a load of their own
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		l.paused.Store(max(l.paused.Load(), int64(now.Sub(last)-every)))
		last = now
	}
}

// run makes the calls of one caller when they are due.
func (l *load) run(ctx context.Context, caller int, due time.Time) {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for n := caller; ; n++ {
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
		}
		select {
		case <-ctx.Done():
			return
		case l.room <- struct{}{}:
		}
		at, idempotent := due, n%2 == 1
		l.open.Go(func() {
			l.insist(&l.shards[caller], at, idempotent)
			<-l.room
		})
		due = due.Add(l.interval())
	}
}

// insist makes a call, and others in its place if it fails and the client is naive.
func (l *load) insist(s *shard, due time.Time, idempotent bool) {
	for again := 0; ; again++ {
		c, err := l.client.make(due, idempotent)
		s.mu.Lock()
		s.calls = append(s.calls, c)
		s.mu.Unlock()
		if err == nil {
			return
		}
		l.samples.keep(&c, err)
		if again == l.o.Again {
			return
		}
	}
}

// keep counts an error, and keeps the text of the first of its kind.
func (s *sampler) keep(c *ledger.Call, err error) {
	kind := anser.Code(c.Code).String() + ", " + c.Outcome.String()
	if e, ok := errors.AsType[*turnError](err); ok {
		kind = e.over + ", " + kind
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds == nil {
		s.kinds = make(map[string]sample)
	}
	one, ok := s.kinds[kind]
	if !ok {
		one = sample{Kind: kind, At: time.Now(), Text: err.Error()}
	}
	one.Count++
	s.kinds[kind] = one
}

// all returns the errors so far.
func (s *sampler) all() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.kinds))
}

// stop ends the load, waits for its calls and writes them to the file.
func (l *load) stop(file string) (loaded, error) {
	if l == nil {
		return loaded{}, errors.New("there is no load")
	}
	l.cancel()
	l.begun.Wait()
	l.open.Wait()
	l.client.load = nil
	var all []ledger.Call
	for i := range l.shards {
		all = append(all, l.shards[i].calls...)
	}
	out := loaded{Calls: len(all), Paused: time.Duration(l.paused.Load()), Samples: l.samples.all()}
	return out, ledger.WriteCalls(file, all)
}

// make makes one call. The call is completed even if the load ends.
func (s *client) make(due time.Time, idempotent bool) (ledger.Call, error) {
	id := ledger.NewID()
	c := ledger.Call{
		Entry: ledger.Entry{ID: id, Account: int64(id[0]), Amount: int64(id[1]) - 128},
		Due:   due.UnixNano(), Began: time.Now().UnixNano(), Idempotent: idempotent,
	}
	out, err := s.caller.call(context.Background(), idempotent, &entry{id[:], c.Account, c.Amount})
	c.Ended = time.Now().UnixNano()
	s.calls.Add(1)
	if err != nil {
		outcome, code := s.outcome(err)
		c.Outcome, c.Code = outcome, uint8(code)
		return c, err
	}
	s.ok.Add(1)
	c.Outcome = ledger.OK
	c.Mixed = !bytes.Equal(out.ID, id[:]) || out.Account != c.Account || out.Amount != c.Amount
	return c, nil
}

// measureOptions say how the capacity is measured.
type measureOptions struct {
	Callers int
	Seconds float64
	File    string // for the calls that it makes
	Refused bool   // a caller ends at the first call that is refused
}

// measure returns how many calls a second there are when each caller makes one after the other.
func (s *client) measure(o measureOptions) (float64, error) {
	shards := make([][]ledger.Call, o.Callers)
	errs := make([]error, o.Callers)
	var wg sync.WaitGroup
	began := time.Now()
	end := began.Add(time.Duration(o.Seconds * float64(time.Second)))
	for i := range o.Callers {
		wg.Go(func() {
			for n := i; time.Now().Before(end); n++ {
				c, err := s.make(time.Now(), n%2 == 1)
				shards[i] = append(shards[i], c)
				if o.Refused && c.Outcome == ledger.Refused {
					return
				}
				if err != nil {
					errs[i] = fmt.Errorf("a call while nothing was wrong: %w", err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	var all []ledger.Call
	for _, s := range shards {
		all = append(all, s...)
	}
	if err := errors.Join(errors.Join(errs...), ledger.WriteCalls(o.File, all)); err != nil {
		return 0, err
	}
	return float64(len(all)) / took.Seconds(), nil
}

// firstOptions are of the first calls of a client.
type firstOptions struct {
	Calls int
	File  string // for the calls that it makes
}

// first makes some calls, one after the other, and returns how long after Dial the first one had
// its reply.
func (s *client) first(o firstOptions) (took time.Duration, err error) {
	var all []ledger.Call
	for i := range o.Calls {
		c, err := s.make(time.Now(), i%2 == 1)
		if err != nil {
			return 0, fmt.Errorf("call %d: %w", i, err)
		}
		if all = append(all, c); i == 0 {
			took = time.Since(s.dialed)
		}
	}
	return took, ledger.WriteCalls(o.File, all)
}
