package route

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/loglimit"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

// Option configures [Rules] and [Static].
type Option func(*options)

type options struct {
	caller   Caller
	recorder *Recorder
	store    registry.Store
	service  string
	err      error
}

// newOptions applies the options of the function with that name.
func newOptions(name string, opts []Option) (o options, err error) {
	for _, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("route.%s: an option is nil", name)
		}
		opt(&o)
	}
	if o.err != nil {
		return o, fmt.Errorf("route.%s: %w", name, o.err)
	}
	return o, nil
}

// From describes the caller, for rules that match it. By default all of its properties are empty.
func From(c Caller) Option { return func(o *options) { o.caller = c } }

// Record makes rec sample the client's calls; by default they are not sampled.
func Record(rec *Recorder) Option { return func(o *options) { o.recorder = rec } }

// Of uses the rules of the service in the store, in place of the rules of the client's service in
// its registry. The store stays open when the client is closed. A nil store is an error of
// [anser.Dial].
func Of(store registry.Store, service string) Option {
	return func(o *options) {
		if o.store, o.service = store, service; store == nil {
			o.err = errNilStore
		}
	}
}

// Rules routes the calls of a client by the rules that its registry keeps for its service, and
// follows their changes. Invalid rules leave the present ones in force, and appear in
// [anser.ClientStatus] and the log. Rules survive an outage of the registry: a client that starts
// during one uses the rules that it has saved on disk, in the same folder as its instances. A
// client without this option ignores the rules; see [anser.RulesStatus]. Without a registry that
// keeps documents, and without [Of], Dial fails.
func Rules(opts ...Option) anser.DialOption {
	return anser.WithRouter(func(s *anser.RouterContext) (anser.Router, error) {
		o, err := newOptions("Rules", opts)
		if err != nil {
			return nil, err
		}
		r := newRouter(s, o)
		if r.store == nil {
			r.store, r.service = s.Store(), s.Service()
		}
		if r.store == nil {
			return nil, errors.New("route.Rules: this target has no registry that keeps documents: add the option route.Of, or use route.Static")
		}
		if err := registry.CheckService(r.service); err != nil {
			return nil, fmt.Errorf("route.Rules: %w", err)
		}
		s.Go(r.follow)
		return r, nil
	})
}

// Static routes the calls of a client by fixed rules. Dial fails if they are invalid.
func Static(rules RuleSet, opts ...Option) anser.DialOption {
	return anser.WithRouter(func(s *anser.RouterContext) (anser.Router, error) {
		if err := rules.Validate(); err != nil {
			return nil, fmt.Errorf("route.Static: %w", err)
		}
		o, err := newOptions("Static", opts)
		if err != nil {
			return nil, err
		}
		r := newRouter(s, o)
		r.apply(&Document{Rules: rules}, false)
		return r, nil
	})
}

// router holds the rules of one client.
type router struct {
	options
	s    *anser.RouterContext
	plan atomic.Pointer[plan]

	spoiled loglimit.Seldom // attempts to use saved rules that cannot be used
	begun   atomic.Bool
	begin   sync.Once
	waiting chan struct{} // closed when the rules are known, or after a timeout

	mu     sync.Mutex // guards the fields below; held while a plan is replaced
	status anser.RulesStatus
	known  bool // the registry has returned the rules
	doc    *Document
}

func newRouter(s *anser.RouterContext, o options) *router {
	r := &router{s: s, options: o, waiting: make(chan struct{})}
	r.plan.Store(compile(new(RuleSet), &r.caller, nil))
	return r
}

// Route implements anser.Router.
func (r *router) Route(_ context.Context, method string, md anser.Metadata) *anser.Route {
	return r.plan.Load().route(method, md, nil)
}

// Intercepts implements anser.Router.
func (r *router) Intercepts(method string) bool {
	return !r.begun.Load() || r.recorder.due() || r.plan.Load().method(method).intercepts()
}

// Explain returns the other effects of the rules on a call, for anser.Client.Explain.
func (r *router) Explain(_ context.Context, method string, md anser.Metadata) []string {
	return r.plan.Load().explain(method, md, time.Now())
}

// start lets the calls continue that wait for the rules.
func (r *router) start() {
	r.begin.Do(func() {
		r.begun.Store(true)
		close(r.waiting)
	})
}

// await waits for the rules.
func (r *router) await(ctx context.Context) {
	select {
	case <-r.waiting:
	case <-ctx.Done():
	}
}

// apply puts rules into force.
func (r *router) apply(d *Document, saved bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if saved && r.known {
		return
	}
	p := compile(&d.Rules, &r.caller, r.plan.Load())
	r.plan.Store(p)
	r.doc = d
	r.s.Adjust(p.adjust)
	r.status = anser.RulesStatus{Version: d.Version, Applied: time.Now(), Saved: saved, Text: d.Rules.text()}
	r.s.Report(r.status)
	r.known = r.known || !saved
	r.start()
}

// trouble records why the rules in force may be outdated.
func (r *router) trouble(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Trouble = err
	r.s.Report(r.status)
	r.start()
}

// savedAfter is how long a starting client waits for the registry before it uses the rules on
// disk.
const savedAfter = 500 * time.Millisecond

// patience is how long the first calls wait for the rules.
const patience = time.Second

// follow applies the registry's rules until ctx is done.
func (r *router) follow(ctx context.Context) {
	late := time.AfterFunc(savedAfter, r.useSaved)
	defer late.Stop()
	tooLate := time.AfterFunc(patience, r.start)
	defer tooLate.Stop()
	defer r.start()
	trouble := func(err error) {
		r.useSaved()
		r.trouble(err)
	}
	for {
		err := r.store.Follow(ctx, documentName(r.service), r.update, trouble)
		if ctx.Err() != nil {
			return
		}
		trouble(err)
		t := time.NewTimer(time.Second)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

func (r *router) update(doc registry.Document) {
	d := new(Document)
	if doc.Revision != 0 {
		var err error
		if d, err = Parse(doc.Data); err != nil {
			r.s.Logger().Warn("the rules cannot be used: those in force stay", "service", r.service, "revision", doc.Revision, "err", err)
			r.useSaved()
			r.trouble(fmt.Errorf("rules of %q: %w", r.service, err))
			return
		}
	}
	r.apply(d, false)
	if err := r.save(doc); err != nil {
		r.s.Logger().Warn("the rules are not kept on disk", "err", err)
	}
}

// save stores the document for a start without the registry. No file is created for a service
// without rules.
func (r *router) save(doc registry.Document) error {
	if doc.Revision == 0 {
		if old, err := r.s.Saved(); err != nil || len(old) == 0 {
			return err
		}
	}
	return r.s.Save(doc.Data)
}

// useSaved applies the rules on disk if the registry has not returned any.
func (r *router) useSaved() {
	r.mu.Lock()
	begun := r.known || r.doc != nil
	r.mu.Unlock()
	if begun {
		return
	}
	data, err := r.s.Saved()
	if err != nil || len(data) == 0 {
		return
	}
	d, err := Parse(data)
	if err != nil {
		if times := r.spoiled.Note(mono.Now()); times > 0 { // once a second while there is no registry
			r.s.Logger().Warn("the saved rules cannot be used", "service", r.service, "times", times, "err", err)
		}
		return
	}
	r.s.Logger().Warn("the registry has not returned the rules: starting with the saved ones", "service", r.service, "version", d.Version)
	r.apply(d, true)
}
