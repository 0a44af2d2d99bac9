package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/cmd/anser/internal/operate"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// States of a canary.
const (
	running  = "running"
	returned = "returned" // a bound was passed, or nothing could be read: the share is 0
	ended    = "ended"    // by an operator, or its time is over: the share is 0
)

// canary is a share of the calls of a service that goes to a version or to instances with a tag. It
// is kept in the registry.
type canary struct {
	Service string  `json:"service"`
	Version string  `json:"version,omitempty"` // of the instances
	Tag     string  `json:"tag,omitempty"`     // name=value, in place of a version
	Share   float64 `json:"share"`             // percent
	Bounds  bounds  `json:"bounds"`
	Step    *step   `json:"step,omitempty"`
	// Until is when clients end the share, whether a console runs or not.
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason,omitempty"`

	State   string    `json:"state"`
	Why     string    `json:"why,omitempty"` // it is not running
	By      string    `json:"by,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Changed time.Time `json:"changed,omitzero"` // the share, or the state
}

// bounds end a canary. At least one is set.
type bounds struct {
	Errors float64       `json:"errors,omitempty"` // share of the calls that fail, 0 to 1
	P99    time.Duration `json:"p99,omitempty"`    // nanoseconds
}

// step raises the share.
type step struct {
	Share float64       `json:"share"` // percent that are added
	Every time.Duration `json:"every"` // nanoseconds
	To    float64       `json:"to"`    // percent
}

const (
	canariesName  = "console/canaries" // of the document
	defaultCanary = time.Hour
	maxCanary     = 24 * time.Hour
	minStep       = 10 * time.Second
	maxCanaries   = 200
)

func (q *canary) check(now time.Time) error {
	if err := checkService(q.Service); err != nil {
		return err
	}
	switch {
	case (q.Version == "") == (q.Tag == ""):
		return mistake("want one of version and tag")
	case q.Tag != "" && (!strings.Contains(q.Tag, "=") || strings.HasPrefix(q.Tag, "=")):
		return mistake("tag: %q: use name=value", q.Tag)
	case !(q.Bounds.Errors >= 0 && q.Bounds.Errors <= 1) || q.Bounds.P99 < 0:
		return mistake("bounds: use errors from 0 to 1, and a p99 above 0 in nanoseconds")
	case q.Bounds.Errors == 0 && q.Bounds.P99 == 0:
		return mistake("bounds: want errors, p99 or both: nothing would end the canary")
	case q.Step != nil && (!(q.Step.Share > 0) || q.Step.Every < minStep || !(q.Step.To <= 100)):
		return mistake("step: use a share above 0, every %v or more, and to at most 100", minStep)
	}
	if q.Until.IsZero() {
		q.Until = now.Add(defaultCanary)
	}
	q.Until = q.Until.UTC().Truncate(time.Second)
	if d := q.Until.Sub(now); d <= 0 || d > maxCanary {
		return mistake("until: %s: use a time within %v", q.Until.Format(time.RFC3339), maxCanary)
	}
	_, err := operate.SetCanary(route.RuleSet{}, q.to(), q.Share, q.Until)
	return asMistakeOrNil(err)
}

func asMistakeOrNil(err error) error {
	if err == nil {
		return nil
	}
	return asMistake(err)
}

// to selects the instances of the canary.
func (q *canary) to() route.Select {
	if q.Version != "" {
		return route.Select{Version: route.Patterns{q.Version}}
	}
	name, value, _ := strings.Cut(q.Tag, "=")
	return route.Select{Tags: map[string]route.Patterns{name: {value}}}
}

// has reports whether an instance is one of the canary.
func (q *canary) has(in *registry.Instance) bool {
	if q.Version != "" {
		return in.Version == q.Version
	}
	name, value, _ := strings.Cut(q.Tag, "=")
	return in.Tags[name] == value
}

func (q *canary) String() string {
	what := "version " + q.Version
	if q.Tag != "" {
		what = q.Tag
	}
	return fmt.Sprintf("canary: %v %% to %s", q.Share, what)
}

// canaries are the canaries of all services, and the revision of their document.
type canaries struct {
	revision uint64
	list     map[string]*canary // by service
}

// run reports whether any of them runs.
func (l *canaries) run() bool {
	for _, q := range l.list {
		if q.State == running {
			return true
		}
	}
	return false
}

func (c *Changes) loadCanaries(ctx context.Context) (*canaries, error) {
	store, err := c.store()
	if err != nil {
		return nil, err
	}
	doc, err := store.Load(ctx, canariesName)
	if err != nil {
		return nil, err
	}
	l := &canaries{revision: doc.Revision, list: make(map[string]*canary)}
	if len(doc.Data) > 0 {
		if err := json.Unmarshal(doc.Data, &l.list); err != nil {
			return nil, fmt.Errorf("the document %s cannot be read: %w", canariesName, err)
		}
	}
	maps.DeleteFunc(l.list, func(_ string, q *canary) bool { return q == nil })
	return l, nil
}

// saveCanary changes the canary of a service in the document. change gets nil if there is none, and
// returns nil to leave everything as it is.
func (c *Changes) saveCanary(ctx context.Context, service string, change func(*canary) (*canary, error)) error {
	for n := 1; ; n++ {
		l, err := c.loadCanaries(ctx)
		if err != nil {
			return err
		}
		next, err := change(l.list[service])
		if next == nil || err != nil {
			return err
		}
		l.list[service] = next
		l.forget()
		data, err := json.Marshal(l.list)
		if err != nil {
			return err
		}
		_, err = c.d.Store.Save(ctx, registry.Document{Name: canariesName, Revision: l.revision, Data: data})
		if !errors.Is(err, registry.ErrConflict) || n == edits {
			return err
		}
	}
}

// forget removes the canaries that ended first, if there are too many.
func (l *canaries) forget() {
	for len(l.list) > maxCanaries {
		oldest := ""
		for name, q := range l.list {
			if q.State != running && (oldest == "" || q.Changed.Before(l.list[oldest].Changed)) {
				oldest = name
			}
		}
		if oldest == "" {
			return
		}
		delete(l.list, oldest)
	}
}

func (c *Changes) readCanaries(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := c.loadCanaries(r.Context())
	if err != nil {
		return nil, err
	}
	out := []*canary{}
	for _, name := range slices.Sorted(maps.Keys(l.list)) {
		out = append(out, l.list[name].shown())
	}
	return out, nil
}

func (c *Changes) readCanary(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := c.loadCanaries(r.Context())
	if err != nil {
		return nil, err
	}
	if q := l.list[r.PathValue("service")]; q != nil {
		return q.shown(), nil
	}
	return nil, &respond.Error{Status: http.StatusNotFound, Text: fmt.Sprintf("%q never had a canary", r.PathValue("service"))}
}

// shown returns the canary as viewers see it.
func (q *canary) shown() *canary {
	out := *q
	plain(&out.Reason, &out.Why, &out.By)
	return &out
}

// planCanary begins a canary, or changes the share and the bounds of the one that runs.
func (c *Changes) planCanary(w http.ResponseWriter, r *http.Request) (*plan, error) {
	var q canary
	if err := read(w, r, &q); err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	if err := q.check(now); err != nil {
		return nil, err
	}
	if _, err := c.store(); err != nil {
		return nil, err
	}
	if err := c.populated(r.Context(), &q); err != nil {
		return nil, err
	}
	q.State, q.Why, q.By, q.Started, q.Changed = running, "", access.From(r.Context()).Name, now, now
	return &plan{
		entry: audit.Entry{Action: "canary", Service: q.Service, Text: q.String(), Reason: q.Reason},
		kind:  "canary",
		do:    func(ctx context.Context) (any, error) { return &q, c.startCanary(ctx, &q) },
	}, nil
}

// populated returns an error if a canary has no instance. Its share of the calls would go to the
// other instances, and its bounds would look at nothing.
func (c *Changes) populated(ctx context.Context, q *canary) error {
	list, err := registry.List(ctx, c.d.Registry, q.Service)
	if err != nil {
		return err
	}
	switch {
	case len(list) == 0:
		return &respond.Error{
			Status: http.StatusConflict,
			Text:   fmt.Sprintf("the service %q has no instances", q.Service),
			Advice: "start instances with the new version or tag, and begin the canary when they are in the registry",
		}
	case slices.ContainsFunc(list, func(in registry.Instance) bool { return q.has(&in) }):
		return nil
	}
	what := fmt.Sprintf("the version %q", q.Version)
	if q.Tag != "" {
		what = fmt.Sprintf("the tag %q", q.Tag)
	}
	return &respond.Error{
		Status: http.StatusConflict,
		Text:   fmt.Sprintf("no instance of %q has %s", q.Service, what),
		Advice: "start instances with it, or choose a version or tag that instances have",
	}
}

// startCanary first notes the canary: if the console ends before the rule is there, another one
// finds a canary without a rule and ends it. The other way around nothing would watch it.
func (c *Changes) startCanary(ctx context.Context, q *canary) error {
	err := c.saveCanary(ctx, q.Service, func(old *canary) (*canary, error) {
		if old != nil && old.State == running {
			q.Started = old.Started
		}
		return q, nil
	})
	if err != nil {
		return err
	}
	comment := q.String()
	if q.Reason != "" {
		comment += ": " + q.Reason
	}
	return c.setShare(ctx, q, q.Share, q.By, comment)
}

// setShare sets the share in the rules.
func (c *Changes) setShare(ctx context.Context, q *canary, percent float64, author, comment string) error {
	_, err := c.edit(ctx, q.Service, author, comment, func(rules route.RuleSet) (route.RuleSet, error) {
		return operate.SetCanary(rules, q.to(), percent, q.Until)
	})
	return err
}

func (c *Changes) planCanaryEnd(_ http.ResponseWriter, r *http.Request) (*plan, error) {
	l, err := c.loadCanaries(r.Context())
	if err != nil {
		return nil, err
	}
	q := l.list[r.PathValue("service")]
	if q == nil || q.State != running {
		return nil, &respond.Error{Status: http.StatusNotFound, Text: fmt.Sprintf("%q has no running canary", r.PathValue("service"))}
	}
	by, reason := access.From(r.Context()).Name, r.URL.Query().Get("reason")
	return &plan{
		entry: audit.Entry{Action: "canary", Service: q.Service, Text: "the canary was ended", Reason: reason},
		kind:  "canary",
		do: func(ctx context.Context) (any, error) {
			return rulesChange{}, c.endCanary(ctx, q, ended, by, strings.TrimSuffix("ended by "+by+": "+reason, ": "))
		},
	}, nil
}

// endCanary sets the share to 0, and then notes why. Of several consoles that do so, each finds the
// share as it wants it.
func (c *Changes) endCanary(ctx context.Context, q *canary, state, by, why string) error {
	_, err := c.edit(ctx, q.Service, by, "canary stopped: "+why, func(rules route.RuleSet) (route.RuleSet, error) {
		if rule, ok := operate.Canary(&rules); !ok || rule.Percent == 0 {
			return rules, errNothing
		}
		return operate.SetCanary(rules, q.to(), 0, time.Time{})
	})
	if err != nil && !errors.Is(err, errNothing) {
		return err
	}
	return c.saveCanary(ctx, q.Service, func(now *canary) (*canary, error) {
		if now == nil || now.State != running || !now.Started.Equal(q.Started) {
			return nil, nil
		}
		now.State, now.Why, now.Changed = state, why, time.Now().UTC().Truncate(time.Second)
		return now, nil
	})
}

// adoptShare makes the canary of a service that runs follow rules that were restored: it has their
// share, or ends if they have none.
func (c *Changes) adoptShare(ctx context.Context, service string, rules *route.RuleSet, why string) error {
	return c.saveCanary(ctx, service, func(now *canary) (*canary, error) {
		if now == nil || now.State != running {
			return nil, nil
		}
		now.Changed = time.Now().UTC().Truncate(time.Second)
		if rule, ok := operate.Canary(rules); ok && rule.Percent > 0 {
			now.Share = rule.Percent
		} else {
			now.State, now.Why = ended, why
		}
		return now, nil
	})
}

// errNothing means that a change is made already.
var errNothing = errors.New("nothing to change")
