package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/record"
)

// Target is a server, or the instances of a service.
type Target struct {
	Name   string
	Client *anser.Client
}

// Options say how calls are sent, and what is compared.
type Options struct {
	// Targets are the new version, and after it the old one if there is one: without, the replies
	// are compared with the recorded ones.
	Targets []Target
	// Speed is how much faster than recorded the calls are sent; 0 means as soon as Open allows.
	// Rate is their number in a second, in place of their own times.
	Speed, Rate float64
	// Open bounds the calls that are open at once, at each target.
	Open int
	// Timeout is how long a call may take.
	Timeout time.Duration
	// Unsafe sends calls of all methods, and not only of idempotent ones.
	Unsafe bool
	// Twice asks the old version twice, or without one the new one, to learn what differs anyway.
	// Only methods that may be called again are.
	Twice bool
	// Ignored are fields that are not compared.
	Ignored Ignored
	// Metadata goes with each call, in addition to what was recorded.
	Metadata anser.Metadata
}

// run is a replay.
type run struct {
	o       Options
	methods [2]map[string]*anser.MethodInfo // of the targets

	mu      sync.Mutex // guards tallies
	tallies map[string]*tally
}

// Run sends the calls of a recording that the filter chooses, and returns when the last one has
// ended, or ctx has.
func Run(ctx context.Context, in *record.Recording, f record.Filter, o Options) (*Report, error) {
	r := &run{o: o, tallies: make(map[string]*tally)}
	if err := r.look(ctx); err != nil {
		return nil, err
	}
	report := &Report{Baseline: "the recording", Methods: []Method{}} // not null in JSON
	for _, t := range o.Targets {
		report.Targets = append(report.Targets, t.Name)
	}
	if len(o.Targets) > 1 {
		report.Baseline = o.Targets[1].Name
	}
	began := time.Now()
	err := r.sendAll(ctx, in, f, report)
	report.Seconds = time.Since(began).Seconds()
	if err != nil {
		return nil, err
	}
	r.finish(report)
	return report, nil
}

// look asks the targets for their methods.
func (r *run) look(ctx context.Context) error {
	for i, t := range r.o.Targets {
		ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
		var list anser.MethodList
		err := t.Client.Call(ctx, anser.MethodsName, new(anser.None), &list, anser.Codec(new(codec.JSON)), anser.WithFailMode(anser.Failfast))
		cancel()
		switch {
		case anser.CodeOf(err) == anser.Unimplemented && r.o.Unsafe:
		case anser.CodeOf(err) == anser.Unimplemented:
			return fmt.Errorf("%s does not describe its methods, so which ones may be called again is unknown; --unsafe calls all of them: %w", t.Name, err)
		case err != nil:
			return err
		}
		r.methods[i] = make(map[string]*anser.MethodInfo)
		for _, m := range list.Methods {
			for _, name := range append([]string{m.Name}, m.Aliases...) {
				r.methods[i][name] = &m
			}
		}
	}
	return nil
}

// method returns the description of a recorded method at a target, and the name by which it is
// called there. A gateway records methods with the service in front, as "orders/Orders.Get".
func (r *run) method(target int, name string) (*anser.MethodInfo, string) {
	known := r.methods[target]
	if m := known[name]; m != nil {
		return m, name
	}
	if _, bare, ok := strings.Cut(name, "/"); ok && known[bare] != nil {
		return known[bare], bare
	}
	return nil, name
}

// repeatable returns why a method may not be called again, or "".
func (r *run) repeatable(method string) string {
	known := false
	for i, t := range r.o.Targets {
		m, _ := r.method(i, method)
		switch {
		case m == nil && i > 0: // a gateway forwards calls that it does not describe
			return t.Name + " does not describe it"
		case m == nil:
			continue
		case m.Stream:
			return "streams are never marked idempotent"
		case !m.Idempotent:
			return "not marked idempotent at " + t.Name
		}
		known = true
	}
	if !known {
		return "no target has it"
	}
	return ""
}

// sendAll sends the calls at their times.
func (r *run) sendAll(ctx context.Context, in *record.Recording, f record.Filter, report *Report) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	open := make(chan struct{}, r.o.Open)
	pace := pacer{speed: r.o.Speed, rate: r.o.Rate}
	for c, err := range in.Calls(f) {
		if err != nil {
			if !errors.Is(err, record.ErrDamaged) {
				return err
			}
			report.Damaged++
			continue
		}
		report.Calls++
		t := r.tally(c.Method)
		why := r.repeatable(c.Method)
		if why != "" && !r.o.Unsafe {
			report.Skipped++
			t.skip()
			continue
		}
		due := pace.due(c.At)
		if !sleepUntil(ctx, due) {
			report.Stopped = true
			return nil
		}
		select {
		case open <- struct{}{}:
		case <-ctx.Done():
			report.Stopped = true
			return nil
		}
		if r.o.Speed > 0 || r.o.Rate > 0 {
			report.Behind = max(report.Behind, time.Since(due))
		}
		report.Sent++
		wg.Go(func() {
			defer func() { <-open }()
			r.one(ctx, t, c, r.o.Twice && why == "")
		})
	}
	return nil
}

// pacer says when calls are due.
type pacer struct {
	speed, rate float64
	began       time.Time
	first       time.Time // arrival of the first call
	n           int
}

func (p *pacer) due(at time.Time) time.Time {
	if p.n == 0 {
		p.began, p.first = time.Now(), at
	}
	n := p.n
	p.n++
	switch {
	case p.rate > 0:
		return p.began.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	case p.speed > 0:
		return p.began.Add(scale(at.Sub(p.first), p.speed))
	}
	return time.Now()
}

func (r *run) tally(method string) *tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tallies[method]
	if t == nil {
		t = newTally()
		r.tallies[method] = t
	}
	return t
}

func (t *tally) skip() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped++
}

// one sends one call to the targets and compares the answers.
func (r *run) one(ctx context.Context, t *tally, c *record.Call, twice bool) {
	var got [2]answer
	var wg sync.WaitGroup
	for i := range r.o.Targets {
		wg.Go(func() { got[i] = r.ask(ctx, i, c) })
	}
	wg.Wait()
	last := len(r.o.Targets) - 1
	var again answer
	if twice && !c.Oneway {
		again = r.ask(ctx, last, c)
	}
	if ctx.Err() != nil {
		return // the user has ended it
	}
	old, hidden := got[1], []string(nil)
	if last == 0 {
		old, hidden = recordedAnswer(c), c.Redacted
	}
	var found, noise []difference
	comparable := !c.Oneway && (last > 0 || callerStayed(c.Code))
	if comparable {
		found = r.differences(c, old, got[0], hidden)
	}
	if twice && !c.Oneway {
		noise = r.differences(c, got[last], again, hidden)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	note(&t.recorded, c.Took)
	for i := range r.o.Targets {
		t.codes[i][got[i].code]++
		note(&t.latency[i], got[i].took)
	}
	if comparable {
		t.compared++
	}
	if twice && !c.Oneway {
		t.asked++
	}
	if len(found) > 0 {
		t.differing++
	}
	t.addLocked(c, found, noise)
}

// callerStayed reports whether a recorded result is that of the call: a caller that gave up
// decided the others.
func callerStayed(code string) bool {
	return code != anser.Canceled.String() && code != anser.DeadlineExceeded.String()
}

// differences compares two answers. hidden are the paths that the recording has replaced.
func (r *run) differences(c *record.Call, old, new answer, hidden []string) []difference {
	if old.code != new.code {
		if r.o.Ignored.ignores(c.Method, codePath) {
			return nil
		}
		return []difference{{codePath, codePath, old.code, new.code}}
	}
	if old.reply == nil && new.reply == nil {
		return nil
	}
	found := compare(old.reply, new.reply)
	return slices.DeleteFunc(found, func(d difference) bool {
		return r.o.Ignored.ignores(c.Method, d.path) || isHidden(hidden, d.path, c.Stream)
	})
}

// codePath takes the place of a path for the result of a call.
const codePath = "(code)"

// isHidden reports whether the recording has replaced what is at a path of a reply.
func isHidden(hidden []string, path string, stream bool) bool {
	if len(hidden) == 0 {
		return false
	}
	full := "reply"
	if stream {
		full, path = "sent", strings.TrimPrefix(path, "[*]")
		path = strings.TrimPrefix(path, ".")
	}
	if strings.HasPrefix(path, "[") || path == "" {
		full += path
	} else {
		full += "." + path
	}
	return slices.ContainsFunc(hidden, func(h string) bool {
		rest, ok := strings.CutPrefix(full, h)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// addLocked counts the differences of a call, each path once.
func (t *tally) addLocked(c *record.Call, found, noise []difference) {
	seen := make(map[string]bool)
	for _, d := range found {
		if seen[d.path] {
			continue
		}
		seen[d.path] = true
		p := t.pathLocked(d.path)
		if p == nil {
			t.more++
			continue
		}
		p.differs++
		if p.example == nil {
			request := c.Request
			if c.Stream && len(c.Messages) > 0 {
				request = c.Messages[0].JSON
			}
			p.example = &Example{At: c.At, Path: d.exact, Old: d.old, New: d.new, Request: cut(string(request))}
		}
	}
	clear(seen)
	for _, d := range noise {
		if seen[d.path] {
			continue
		}
		seen[d.path] = true
		if p := t.pathLocked(d.path); p != nil {
			p.noise++
		}
	}
}

// finish adds the methods to the report.
func (r *run) finish(report *Report) {
	for _, name := range slices.Sorted(maps.Keys(r.tallies)) {
		m := r.tallies[name].report(name, len(r.o.Targets))
		if m.Skipped > 0 {
			m.Why = r.repeatable(name)
		}
		for _, d := range m.Differences {
			if !d.Noisy {
				report.Differences++
			}
		}
		if m.MorePaths > 0 {
			report.Differences++
		}
		report.Methods = append(report.Methods, m)
	}
}
