package collect

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// askEvery is the time between two questions for the names of the services while a viewer looks,
// askRarely the time otherwise, and askBound how long an answer may take. While there are few calls
// every second round asks: the watches say that the connection to a registry has ended.
const (
	askEvery  = time.Second
	askRarely = 5 * time.Second
	askBound  = 500 * time.Millisecond
)

// SourceState is the state of a registry.
type SourceState struct {
	Name, Kind string
	Trouble    string // "": it answers
	Since      time.Time
	Latency    time.Duration
}

// ServiceState is what a registry says about a service.
type ServiceState struct {
	Name      string
	Source    string
	Known     bool                // the registry has given a list
	Instances []registry.Instance // sorted by key; shared: do not change it
	Stale     time.Time           // since when the list may be outdated; zero: it is not
	Rules     RulesState
}

// RulesState are the rules of a service in the registry.
type RulesState struct {
	Known   bool // the registry has said whether there are any
	Version uint64
	Author  string
	Comment string
	Time    time.Time
	Trouble string
	Rules   *route.RuleSet // shared: do not change it; nil: there are none that can be read
}

// source follows a registry.
type source struct {
	Source
	every func(trouble bool) time.Duration // the time between two questions
	wake  chan struct{}                    // that time, or the trouble, may be another one
	asked chan struct{}                    // it must be asked now

	mu       sync.Mutex // guards the fields below
	trouble  string
	since    time.Time
	latency  time.Duration
	answered bool
	services map[string]*followed
	changed  func() // is called when trouble begins or ends
	news     func() // is called when a service or its rules are others
}

// followed is a service that is followed.
type followed struct {
	ServiceState
	trouble string // of the watch
	cancel  context.CancelFunc
}

func newSource(s Source, every func(trouble bool) time.Duration, changed, news func()) *source {
	return &source{Source: s, every: every, wake: make(chan struct{}, 1), asked: make(chan struct{}, 1), services: make(map[string]*followed), changed: changed, news: news}
}

// follow follows the registry until ctx is done.
func (s *source) follow(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, name := range s.Services {
		s.add(ctx, &wg, name)
	}
	lister, ok := s.Resolver.(registry.Lister)
	if !ok || len(s.Services) > 0 {
		<-ctx.Done()
		return
	}
	for {
		began := time.Now()
		s.ask(ctx, &wg, lister)
		if !s.rest(ctx, began) {
			return
		}
	}
}

// rest waits until the registry is asked again, which was asked at a time, and reports whether it
// is.
func (s *source) rest(ctx context.Context, asked time.Time) bool {
	for {
		t := time.NewTimer(time.Until(asked.Add(s.every(s.troubled()))))
		select {
		case <-ctx.Done():
			t.Stop()
			return false
		case <-t.C:
			return true
		case <-s.asked:
			t.Stop()
			return true
		case <-s.wake:
			t.Stop()
		}
	}
}

// troubled reports whether the registry or one of its watches is in trouble.
func (s *source) troubled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != "" {
		return true
	}
	for _, f := range s.services {
		if f.trouble != "" {
			return true
		}
	}
	return false
}

// ask asks for the names of the services. A registry that does not answer in time is in trouble
// before its watches notice.
func (s *source) ask(ctx context.Context, wg *sync.WaitGroup, lister registry.Lister) {
	bounded, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	began := time.Now()
	names, err := lister.Services(bounded)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	if err != nil {
		s.noteLocked(err)
		s.mu.Unlock()
		return
	}
	if s.trouble != "" {
		s.changed()
	}
	s.trouble, s.since, s.latency, s.answered = "", time.Time{}, time.Since(began), true
	for name, f := range s.services {
		// A service whose last instance has left stays for a while, so that it is seen to be down.
		if !slices.Contains(names, name) && f.Known && len(f.Instances) == 0 && f.Rules.Version == 0 {
			f.cancel()
			delete(s.services, name)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		s.add(ctx, wg, name)
	}
}

func (s *source) noteLocked(err error) {
	if s.trouble == "" {
		s.since = time.Now()
		s.changed()
	}
	s.trouble = model.Text(err.Error())
}

// add follows a service, unless it is followed already.
func (s *source) add(ctx context.Context, wg *sync.WaitGroup, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.services[name] != nil || len(s.services) >= maxServices {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &followed{ServiceState: ServiceState{Name: name, Source: s.Name}, cancel: cancel}
	s.services[name] = f
	wg.Go(func() { s.watch(ctx, f) })
	if store, ok := s.Resolver.(registry.Store); ok {
		wg.Go(func() { s.followRules(ctx, f, store) })
	}
}

// watch follows the instances of a service.
func (s *source) watch(ctx context.Context, f *followed) {
	trouble := func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.trouble == "" {
			f.Stale = time.Now()
			s.changed()
			signal(s.wake)
		}
		f.trouble = model.Text(err.Error())
	}
	err := s.Resolver.Watch(ctx, f.Name, func(list []registry.Instance) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.Known, f.Instances, f.trouble, f.Stale = true, list, "", time.Time{}
		s.news()
	}, trouble)
	if err != nil && ctx.Err() == nil {
		trouble(err)
	}
}

// followRules follows the rules of a service.
func (s *source) followRules(ctx context.Context, f *followed, store registry.Store) {
	set := func(r RulesState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.Rules = r
		s.news()
	}
	var last *route.RuleSet // clients keep these, too, when later ones cannot be read
	store.Follow(ctx, "rules/"+f.Name, func(doc registry.Document) {
		if doc.Revision == 0 {
			last = nil
			set(RulesState{Known: true})
			return
		}
		d, err := route.Parse(doc.Data)
		if err != nil {
			set(RulesState{Known: true, Trouble: model.Text(err.Error()), Rules: last})
			return
		}
		last = &d.Rules
		set(RulesState{Known: true, Version: d.Version, Author: model.Text(d.Author), Comment: model.Text(d.Comment), Time: d.Time, Rules: last})
	}, func(error) {})
}

var errSilent = errors.New("the registry has not answered yet")

// state returns what the registry has said so far.
func (s *source) state() (state SourceState, list []ServiceState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state = SourceState{Name: s.Name, Kind: s.Kind, Trouble: s.trouble, Since: s.since, Latency: s.latency}
	for _, f := range s.services {
		out := f.ServiceState
		if out.Stale.IsZero() {
			out.Stale = s.since
		}
		if state.Trouble == "" && f.trouble != "" {
			state.Trouble, state.Since = f.trouble, f.Stale
		}
		s.answered = s.answered || f.Known
		list = append(list, out)
	}
	if state.Trouble == "" && !s.answered {
		state.Trouble = errSilent.Error()
	}
	return state, list
}
