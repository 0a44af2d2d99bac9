// Package change has the routes of the console that change something or call methods. A change is
// recorded in the audit log before it is made, and is not made if that fails. Everything that is
// changed is kept in the registry: the rules of a service, which its clients follow, and the list
// of canaries. A console may end at any time, and others may change the same things.
package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// Deps are what the routes work with. Access, Registry and Dial must be set.
type Deps struct {
	Access   *access.Access
	Log      *audit.Log // nil: nothing can be changed, as it could not be recorded
	Registry registry.Resolver
	Store    registry.Store // nil: the registry keeps no documents, so that nothing can be changed
	// Dial returns a client of a service, or of an address.
	Dial func(target string, opts ...anser.DialOption) (*anser.Client, error)
	// Figures returns the present figures of the instances of a service; nil means that none are
	// known.
	Figures func(service string) []Figures
	// Callers returns targets of processes that call a service and serve their sampled calls
	// with a route.Recorder; nil means none.
	Callers func(service string) []string
	// Sample returns calls to a service that its callers make now, without their metadata, and the
	// number of processes that make them. It takes some seconds. nil means none.
	Sample func(service string) (calls []route.Sample, processes int)
	// Target returns how a command names a service, for what users copy; nil means its name.
	Target func(service string) string
	// Note shows a change to viewers; nil means that it is not shown. kind is one of package model.
	Note func(kind, service, instance, text, by string)
}

// Figures describe the calls of an instance.
type Figures struct {
	Instance registry.Instance
	Known    bool // they are current
	Down     bool // callers cannot reach the instance, or have ejected it
	Rate     float64
	Failed   float64 // of these
	P99      time.Duration
}

// Changes has the routes. Its methods are safe for concurrent use.
type Changes struct {
	d         Deps
	transfers transfers
}

// New returns the routes.
func New(d Deps) (*Changes, error) {
	if d.Access == nil || d.Registry == nil || d.Dial == nil {
		return nil, errors.New("the changes of the console need access, a registry and a way to dial")
	}
	if d.Note == nil {
		d.Note = func(string, string, string, string, string) {}
	}
	if d.Target == nil {
		d.Target = func(service string) string { return service }
	}
	return &Changes{d: d}, nil
}

// Routes returns the handlers by their patterns of http.ServeMux.
func (c *Changes) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"POST /api/instances":                c.changes(c.planInstance),
		"GET /api/ruleschema":                c.reads(readRuleSchema),
		"GET /api/rules/{service}":           c.reads(c.readRules),
		"GET /api/rules/{service}/history":   c.reads(c.readHistory),
		"POST /api/rules/{service}/check":    c.reads(c.checkRules),
		"POST /api/rules/{service}/dryrun":   c.reads(c.dryRun),
		"PUT /api/rules/{service}":           c.changes(c.planRules),
		"POST /api/rules/{service}/restore":  c.changes(c.planRestore),
		"GET /api/canary":                    c.reads(c.readCanaries),
		"GET /api/canary/{service}":          c.reads(c.readCanary),
		"POST /api/canary":                   c.changes(c.planCanary),
		"DELETE /api/canary/{service}":       c.changes(c.planCanaryEnd),
		"GET /api/faultinjection":            c.reads(c.readFaults),
		"POST /api/faultinjection":           c.changes(c.planFault),
		"DELETE /api/faultinjection":         c.changes(c.planFaultEnd),
		"GET /api/schema/{service}/{method}": c.reads(c.readSchema),
		"POST /api/call":                     c.changes(c.planCall),
		"POST /api/call/stream":              c.d.Access.WrapLong(http.HandlerFunc(c.serveStream), access.Operate),
		"GET /api/audit":                     c.reads(c.readAudit),

		"GET /api/files/{service}":                   c.reads(c.readFolders),
		"GET /api/files/{service}/{name}":            c.reads(c.readFiles),
		"GET /api/files/{service}/{name}/stat":       c.reads(c.readStat),
		"GET /api/files/{service}/{name}/content":    c.d.Access.WrapLong(http.HandlerFunc(c.serveDownload), access.Operate),
		"PUT /api/files/{service}/{name}/content":    c.d.Access.WrapLong(http.HandlerFunc(c.serveUpload), access.Operate),
		"DELETE /api/files/{service}/{name}/content": c.changes(c.planRemoval),
	}
}

func mistake(format string, args ...any) *respond.Error {
	return &respond.Error{Status: http.StatusBadRequest, Text: fmt.Sprintf(format, args...)}
}

// asProblem returns the problem that an error is, with advice for errors of the registry.
func asProblem(err error) *respond.Error {
	if p, ok := errors.AsType[*respond.Error](err); ok {
		return p
	}
	if conflict, ok := errors.AsType[*route.ConflictError](err); ok {
		p := &respond.Error{Status: http.StatusConflict, Text: conflict.Error(), Advice: "the rules stay as they are: load them, and send your change with their version"}
		if now := conflict.Current; now != nil {
			p.Current = rulesOf(now)
			p.Advice = fmt.Sprintf("the rules stay as they are: compare your change with the other one, and send it with version %d", now.Version)
		}
		return p
	}
	if errors.Is(err, registry.ErrConflict) {
		return &respond.Error{Status: http.StatusConflict, Text: err.Error(), Advice: "others make changes at the same time: look at what is in force, and send your change again"}
	}
	if errors.Is(err, registry.ErrTooLarge) {
		return &respond.Error{Status: http.StatusRequestEntityTooLarge, Text: err.Error(), Advice: "give a shorter reason, or fewer rules"}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &respond.Error{Status: http.StatusGatewayTimeout, Text: "the registry has not answered in time", Advice: "look at the registries, and whether the change was made"}
	}
	return &respond.Error{Status: http.StatusBadGateway, Text: err.Error(), Advice: "look at the registries, and whether the change was made"}
}

const (
	maxBody = 1 << 20          // bytes
	patient = 10 * time.Second // for the registry
)

// read decodes the body of a request.
func read(w http.ResponseWriter, r *http.Request, v any) error {
	if !access.IsJSON(r) {
		return &respond.Error{Status: http.StatusUnsupportedMediaType, Text: "the body is not JSON", Advice: "send it as application/json"}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return &respond.Error{Status: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("the body has more than %d bytes", maxBody)}
		}
		return mistake("the body cannot be read: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return mistake("the body has more than one JSON text")
	}
	return nil
}

// reads returns a handler that answers with what f returns.
func (c *Changes) reads(f func(w http.ResponseWriter, r *http.Request) (any, error)) http.Handler {
	return c.d.Access.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patient)
		defer cancel()
		v, err := f(w, r.WithContext(ctx))
		if err != nil {
			asProblem(err).Write(w)
			return
		}
		respond.JSON(w, http.StatusOK, v)
	}), access.Look)
}

// plan is a change that has been checked and was not made yet.
type plan struct {
	entry audit.Entry
	kind  string        // of the change that viewers see; empty for none
	limit time.Duration // 0 means patient
	do    func(ctx context.Context) (any, error)
	drop  func() // in place of do, if the change is not made; nil means nothing
}

// changes returns a handler that makes the change that f plans.
func (c *Changes) changes(f func(w http.ResponseWriter, r *http.Request) (*plan, error)) http.Handler {
	return c.d.Access.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patient)
		defer cancel()
		p, err := f(w, r.WithContext(ctx))
		if over := c.over(r); over != nil {
			if p != nil && p.drop != nil {
				p.drop()
			}
			err = over
		}
		if err != nil {
			asProblem(err).Write(w)
			return
		}
		v, err := c.make(r, p)
		if err != nil {
			asProblem(err).Write(w)
			return
		}
		respond.JSON(w, http.StatusOK, v)
	}), access.Operate)
}

// over returns a problem if the session of a request has ended since the request began: its body
// may have come much later.
func (c *Changes) over(r *http.Request) error {
	if c.d.Access.Over(r.Context()) {
		return &respond.Error{Status: http.StatusUnauthorized, Text: "nothing was changed, as the session has ended", Advice: "log in"}
	}
	return nil
}

// make records a change, makes it, and records how it ended. A change that has begun is not given
// up because its viewer leaves.
func (c *Changes) make(r *http.Request, p *plan) (any, error) {
	begun, err := c.begin(r, p.entry)
	if err != nil {
		if p.drop != nil {
			p.drop()
		}
		return nil, err
	}
	limit := p.limit
	if limit == 0 {
		limit = patient
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), limit)
	defer cancel()
	v, err := p.do(ctx)
	return v, errors.Join(err, c.end(begun, p.kind, err))
}

// begin records that a change begins.
func (c *Changes) begin(r *http.Request, e audit.Entry) (audit.Entry, error) {
	return c.record(c.signed(r, e))
}

// signed returns the entry for the beginning of what a request does.
func (c *Changes) signed(r *http.Request, e audit.Entry) audit.Entry {
	u := access.From(r.Context())
	e.User, e.Role, e.Remote, e.Outcome = u.Name, u.Role.String(), c.d.Access.Remote(r), audit.Begun
	return e
}

func (c *Changes) record(e audit.Entry) (audit.Entry, error) {
	if c.d.Log == nil {
		return e, &respond.Error{Status: http.StatusForbidden, Text: "nothing was changed, as there is no audit log", Advice: "start the console with --audit FILE"}
	}
	e, err := c.d.Log.Add(e)
	if err != nil {
		return e, unrecorded("nothing was changed, as the change", err)
	}
	return e, nil
}

// unrecorded is the problem of what is not done, as the audit log does not take its beginning.
func unrecorded(what string, err error) *respond.Error {
	return respond.Problem(http.StatusServiceUnavailable, what+" cannot be recorded: "+err.Error(), "make room for the audit log, or repair it")
}

// end records how a change ended, and shows it to viewers.
func (c *Changes) end(begun audit.Entry, kind string, err error) error {
	e := begun
	e.Of, e.Outcome = begun.Sequence, audit.Done
	if err != nil {
		e.Outcome, e.Text = audit.Failed, err.Error()
	} else if kind != "" {
		c.d.Note(kind, e.Service, e.Subject, e.Text, e.User)
	}
	if _, lost := c.d.Log.Add(e); lost != nil && err == nil {
		return &respond.Error{Status: http.StatusInternalServerError, Text: "the change was made, and the audit log has only its beginning: " + lost.Error(), Advice: "make room for the audit log, or repair it"}
	}
	return nil
}

// store returns the store of the rules.
func (c *Changes) store() (registry.Store, error) {
	if c.d.Store == nil {
		return nil, &respond.Error{Status: http.StatusNotImplemented, Text: "the registry keeps no documents, so it has no rules", Advice: "use etcd, ZooKeeper, Consul, Redis or a file"}
	}
	return c.d.Store, nil
}

func checkService(service string) error {
	if err := registry.CheckService(service); err != nil {
		return mistake("%v", err)
	}
	return nil
}

// edits is how often a change of rules is made again on top of another one.
const edits = 5

// edit changes the rules of a service. The change is made again if another one comes before it: it
// concerns other rules.
func (c *Changes) edit(ctx context.Context, service, author, comment string, change func(route.RuleSet) (route.RuleSet, error)) (*route.Document, error) {
	store, err := c.store()
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		now, err := route.Load(ctx, store, service)
		if err != nil {
			return nil, err
		}
		rules, err := change(now.Rules)
		if errors.Is(err, errNothing) {
			return now, err
		}
		if err != nil {
			return nil, asMistake(err)
		}
		next, err := route.Save(ctx, store, service, now.Version, rules, author, comment)
		if _, conflict := errors.AsType[*route.ConflictError](err); conflict && n < edits {
			continue
		}
		return next, err
	}
}

// asMistake returns a problem for an error of what a user has sent.
func asMistake(err error) error {
	if p, ok := errors.AsType[*respond.Error](err); ok {
		return p
	}
	return mistake("%v", err)
}

// auditPage is the maximum number of entries of an answer.
const auditPage = 100

func (c *Changes) readAudit(_ http.ResponseWriter, r *http.Request) (any, error) {
	var before uint64 // 0 is the end
	if text := r.URL.Query().Get("before"); text != "" {
		var err error
		if before, err = strconv.ParseUint(text, 10, 64); err != nil || before == 0 {
			return nil, mistake("before=%.40q is no number of an entry", text)
		}
	}
	if c.d.Log == nil {
		return []audit.Entry{}, nil
	}
	list, err := c.d.Log.Read(before, auditPage)
	if err != nil {
		return nil, respond.Problem(http.StatusInternalServerError, err.Error(), "check the file with \"anser console audit\"")
	}
	// The file has the texts as users gave them. Characters that change the order of others would
	// make an entry read as another one.
	for i := range list {
		e := &list[i]
		plain(&e.User, &e.Remote, &e.Service, &e.Subject, &e.Text, &e.Reason)
	}
	return list, nil
}

// plain replaces the characters of texts that are not shown as they are.
func plain(texts ...*string) {
	for _, s := range texts {
		*s = printable.Text(*s)
	}
}
