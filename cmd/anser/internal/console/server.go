package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/events"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/history"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/longhistory"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

// escape escapes a name as a segment of a path and as a value of a query.
func escape(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

// routes registers the handlers.
func (c *Console) routes() {
	handle := func(pattern string, h http.Handler) {
		c.mux.Handle(pattern, h)
		c.patterns = append(c.patterns, pattern)
	}
	look := func(pattern string, f http.HandlerFunc) {
		handle(pattern, c.o.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.look(r)
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			f(w, r)
		})))
	}
	look("GET /api/system", c.cached(func(s *snapshot, _ *http.Request) (any, *respond.Error) { return c.systemOf(s), nil }))
	look("GET /api/instances", c.cached((*snapshot).instancePage))
	look("GET /api/instances/map", c.cached((*snapshot).instanceMap))
	look("GET /api/services/{service}", c.cached(c.serviceDetail))
	look("GET /api/services/{service}/effect", c.cached(c.effectOf))
	look("GET /api/services/{service}/methods/{method}", c.cached(c.methodDetail))
	look("GET /api/registries", c.cached(func(s *snapshot, _ *http.Request) (any, *respond.Error) { return s.system.Registries, nil }))
	look("GET /api/calls", c.cached(func(s *snapshot, r *http.Request) (any, *respond.Error) {
		q := r.URL.Query()
		if kind := q.Get("kind"); kind != "" && kind != "failed" && kind != "slow" {
			return nil, respond.Problem(http.StatusBadRequest, "kind is neither failed nor slow", "leave it out for both")
		}
		return s.calls(callFilter{service: q.Get("service"), method: q.Get("method"), kind: q.Get("kind")}), nil
	}))
	look("GET /api/trace", c.cached(func(s *snapshot, r *http.Request) (any, *respond.Error) {
		id := r.URL.Query().Get("id")
		if id == "" {
			return nil, respond.Problem(http.StatusBadRequest, "there is no id of a trace", "use ?id= with the trace id of a call")
		}
		return s.trace(id), nil
	}))
	look("GET /api/search", c.cached(func(s *snapshot, r *http.Request) (any, *respond.Error) { return s.search(r.URL.Query().Get("q")), nil }))
	look("GET /api/files", c.cached(func(s *snapshot, _ *http.Request) (any, *respond.Error) { return s.folders(), nil }))
	look("GET /api/changes", c.serveChanges)
	look("GET /api/history", c.serveHistory)
	look("GET /api/history/heat", c.serveHistory)
	look("GET /api/connections", c.serveConns)
	look("GET /api/events", c.serveEvents)
	look("GET /api/calls/live", c.serveLive)
	for pattern, h := range c.o.Routes {
		handle(pattern, h)
	}
	handle("/api/", c.o.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond.Fail(w, http.StatusNotFound, "the console has no such route", "see docs/console.md")
	})))
	if c.o.Page != nil {
		handle("/", c.o.Page)
	}
}

// look makes the console read the system, and in detail the service that a request names. For an
// edge that is the caller, whose figures it has.
func (c *Console) look(r *http.Request) {
	c.collector.Look(lookFor)
	q := r.URL.Query()
	from, _, _ := strings.Cut(q.Get("edge"), ">")
	s := c.current()
	for _, name := range [...]string{r.PathValue("service"), q.Get("service"), from} {
		if s.services[name] != nil {
			c.collector.LookAt(name, lookFor)
		}
	}
}

func answer(w http.ResponseWriter, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(data)
}

func (c *Console) current() *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// answers are the answers of a snapshot, which are the same for all viewers.
type answers struct {
	mu     sync.Mutex // guards the fields below
	byPath map[string][]byte
	size   int // bytes of all
}

const (
	maxAnswers = 500      // that are kept until the next round
	maxAnswer  = 1 << 20  // bytes of one
	maxKept    = 16 << 20 // bytes of all: viewers choose the URLs
)

func newAnswers() *answers { return &answers{byPath: make(map[string][]byte)} }

func (a *answers) get(key string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byPath[key]
}

// put keeps an answer if there is room for it.
func (a *answers) put(key string, data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.byPath[key]; ok || len(a.byPath) >= maxAnswers || a.size+len(data) > maxKept {
		return
	}
	a.byPath[key] = data
	a.size += len(data)
}

// cached answers with what f returns for the current snapshot, once for each URL.
func (c *Console) cached(f func(s *snapshot, r *http.Request) (any, *respond.Error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, key := c.current(), r.URL.RequestURI()
		data := s.answers.get(key)
		if data == nil {
			v, p := f(s, r)
			if p != nil {
				p.Write(w)
				return
			}
			data = encode(v)
			if len(data) <= maxAnswer && len(key) < maxKey {
				s.answers.put(key, data)
			}
		}
		answer(w, data)
	}
}

// maxKey is the maximum length of a URL whose answer is kept.
const maxKey = 1000

func (c *Console) serviceDetail(s *snapshot, r *http.Request) (any, *respond.Error) {
	v, p := s.named(r)
	if p != nil {
		return nil, p
	}
	d := s.service(v)
	d.Changes = c.changes.latest(firstShown, v.Name, time.Time{})
	return d, nil
}

func (c *Console) methodDetail(s *snapshot, r *http.Request) (any, *respond.Error) {
	v, p := s.named(r)
	if p != nil {
		return nil, p
	}
	if v.methods[r.PathValue("method")] == nil {
		return nil, respond.Problem(http.StatusNotFound, fmt.Sprintf("no instance of %s is known to serve the method %q", v.Name, model.Text(r.PathValue("method"))),
			"its name is Service.Method, and it appears when an admin page of an instance lists it")
	}
	return s.methodDetail(v, r.PathValue("method")), nil
}

// named returns the service of the path of a request.
func (s *snapshot) named(r *http.Request) (*serviceView, *respond.Error) {
	v := s.services[r.PathValue("service")]
	if v == nil {
		return nil, respond.Problem(http.StatusNotFound, fmt.Sprintf("there is no service %q", model.Text(r.PathValue("service"))),
			"services appear when a registry has an instance of them, or a process calls them")
	}
	return v, nil
}

func (c *Console) serveChanges(w http.ResponseWriter, r *http.Request) {
	before, p := timeOf(r.URL.Query(), "before")
	if p != nil {
		p.Write(w)
		return
	}
	answer(w, encode(c.changes.latest(maxListed, r.URL.Query().Get("service"), before)))
}

func timeOf(q url.Values, name string) (t time.Time, p *respond.Error) {
	text := q.Get(name)
	if text == "" {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, respond.Problem(http.StatusBadRequest, fmt.Sprintf("%s=%q is no time", name, model.Text(text)), "use a form such as 2026-01-02T15:04:05Z")
	}
	return t, nil
}

// serveHistory answers with a series, or with a heat map.
func (c *Console) serveHistory(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	key, p := keyOf(q)
	if p != nil {
		p.Write(w)
		return
	}
	var span history.Range
	if span.From, p = timeOf(q, "from"); p == nil {
		span.To, p = timeOf(q, "to")
	}
	if text := q.Get("step"); p == nil && text != "" {
		d, err := stepOf(text)
		if span.Step = d; err != nil {
			p = respond.Problem(http.StatusBadRequest, fmt.Sprintf("step=%q is no duration", model.Text(text)), "use a form such as 10s, or nanoseconds")
		}
	}
	switch {
	case p != nil:
		p.Write(w)
	case strings.HasSuffix(r.URL.Path, "/heat"):
		if key.Kind != history.OfService && key.Kind != history.OfMethod {
			respond.Fail(w, http.StatusBadRequest, "there are heat maps of services and methods only", "use ?service= and ?method=")
			return
		}
		answer(w, encode(c.history.Heat(key, span)))
	case c.o.Long != nil && isLong(span, time.Now()):
		c.serveLong(w, r, key, span)
	default:
		answer(w, encode(c.history.Series(key, span)))
	}
}

// isLong reports whether a range begins before what the console keeps.
func isLong(r history.Range, now time.Time) bool {
	return !r.From.IsZero() && now.Sub(r.From) > history.Span+history.Coarse
}

// serveLong answers with a series of Prometheus.
func (c *Console) serveLong(w http.ResponseWriter, r *http.Request, key history.Key, span history.Range) {
	if span.To.IsZero() {
		span.To = time.Now()
	}
	series, err := c.o.Long.Series(r.Context(), key, span)
	if _, wrong := errors.AsType[*longhistory.RangeError](err); wrong {
		respond.Fail(w, http.StatusBadRequest, err.Error(), "use a shorter range")
		return
	}
	if err != nil {
		respond.Fail(w, http.StatusBadGateway, model.Text(err.Error()), "look at Prometheus; the last hour is known without it")
		return
	}
	answer(w, encode(series))
}

func stepOf(text string) (time.Duration, error) {
	var n int64
	if json.Unmarshal([]byte(text), &n) == nil && n >= 0 {
		return time.Duration(n), nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("negative")
	}
	return d, err
}

// keyOf returns the series that a query names.
func keyOf(q url.Values) (key history.Key, p *respond.Error) {
	service := q.Get("service")
	switch from, to, isEdge := strings.Cut(q.Get("edge"), ">"); {
	case isEdge:
		return history.Key{Kind: history.OfEdge, A: from, B: to}, nil
	case service == "":
		return key, respond.Problem(http.StatusBadRequest, "there is neither a service nor an edge", "use ?service=, with &method= or &instance=, or ?edge=from>to")
	case q.Get("method") != "":
		return history.Key{Kind: history.OfMethod, A: service, B: q.Get("method")}, nil
	case q.Get("instance") != "":
		return history.Key{Kind: history.OfInstance, A: service, B: q.Get("instance")}, nil
	}
	return history.Key{Kind: history.OfService, A: service}, nil
}

// serveEvents sends the whole system, and then what changes.
func (c *Console) serveEvents(w http.ResponseWriter, r *http.Request) {
	topics := []string{topicSystem}
	q := r.URL.Query()
	service, instances := q.Get("service"), q.Get("instances") != "" && q.Get("instances") != "0"
	if len(service) > model.MaxText {
		respond.Fail(w, http.StatusBadRequest, "the name of the service is too long", "use a name that the registry has")
		return
	}
	if instances {
		topics = append(topics, topicInstances+service)
	}
	c.mu.Lock()
	v, err := c.hub.Join(topics...)
	s := c.now
	c.mu.Unlock()
	if err != nil {
		respond.Fail(w, http.StatusServiceUnavailable, "there are too many viewers", fmt.Sprintf("close some: the console serves %d at a time", events.MaxViewers))
		return
	}
	defer c.hub.Leave(v)
	first := [][]byte{events.Event("system", encode(c.systemOf(s)))}
	if instances {
		first = append(first, events.Event("instances", encode(s.instancesOf(service, maxPage))))
	}
	v.Serve(w, r, func() { c.look(r) }, bytes.Join(first, nil))
}
