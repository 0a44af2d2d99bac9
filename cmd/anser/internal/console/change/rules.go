package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// rulesDocument are the rules of a service as text.
type rulesDocument struct {
	Version uint64    `json:"version"` // 0: there are none
	Text    string    `json:"text"`    // YAML
	Author  string    `json:"author,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	Comment string    `json:"comment,omitempty"`
}

func rulesOf(d *route.Document) rulesDocument {
	text, err := yaml.Marshal(map[string]any{"rules": d.Rules})
	if err != nil {
		text = []byte("# the rules cannot be shown: " + err.Error())
	}
	out := rulesDocument{d.Version, string(text), d.Author, d.Time, d.Comment}
	plain(&out.Author, &out.Comment)
	return out
}

// readRuleSchema answers with the JSON Schema of rules, which says what may be where in a text.
func readRuleSchema(http.ResponseWriter, *http.Request) (any, error) {
	schema, err := route.Schema()
	return json.RawMessage(schema), err
}

func (c *Changes) readRules(_ http.ResponseWriter, r *http.Request) (any, error) {
	store, service, err := c.rulesAt(r)
	if err != nil {
		return nil, err
	}
	d, err := route.Load(r.Context(), store, service)
	if err != nil {
		return nil, err
	}
	return rulesOf(d), nil
}

// rulesAt returns the store and the service of a request.
func (c *Changes) rulesAt(r *http.Request) (registry.Store, string, error) {
	service := r.PathValue("service")
	store, err := c.store()
	return store, service, errors.Join(err, checkService(service))
}

func (c *Changes) readHistory(_ http.ResponseWriter, r *http.Request) (any, error) {
	store, service, err := c.rulesAt(r)
	if err != nil {
		return nil, err
	}
	list, err := route.History(r.Context(), store, service)
	if err != nil {
		return nil, err
	}
	out := []rulesDocument{}
	for _, d := range list {
		out = append(out, rulesOf(d))
	}
	return out, nil
}

// rulesText is the body of the routes that take rules.
type rulesText struct {
	Text    string `json:"text"` // YAML or JSON
	Version uint64 `json:"version"`
	Reason  string `json:"reason"`
}

// invalid is a mistake in rules.
type invalid struct {
	Line    int    `json:"line,omitempty"` // from 1; 0 means unknown
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"` // such as rules.split[0].percent
	Message string `json:"message"`
}

// checked is the answer of api/rules/{service}/check.
type checked struct {
	OK      bool               `json:"ok"`
	Errors  []invalid          `json:"errors"`
	Effects []route.RuleEffect `json:"effects"` // the instances that each rule selects
	Summary string             `json:"summary"`
}

// parse returns the rules in a text, or the mistakes.
func parse(text string) (*route.Document, []invalid) {
	if len(text) > registry.MaxDocument {
		return nil, []invalid{{Message: fmt.Sprintf("the rules have %d bytes: at most %d", len(text), registry.MaxDocument)}}
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text)) // JSON is YAML
	if err != nil {
		return nil, []invalid{{Line: lineOf(err), Message: err.Error()}}
	}
	d, err := route.Parse(data)
	if err == nil {
		err = upcoming(d)
	}
	if err == nil {
		return d, nil
	}
	var list []invalid
	for line := range strings.SplitSeq(err.Error(), "\n") {
		in := invalid{Message: line}
		if path, message, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(path, "rules") {
			in.Path, in.Message = path, message
			in.Line, in.Column = find(text, path)
		}
		list = append(list, in)
	}
	return nil, list
}

// upcoming rejects new rules with a fault that is over: its author has meant another time.
func upcoming(d *route.Document) error {
	for i, f := range d.Rules.Faults {
		if !time.Now().Before(f.Until) {
			return fmt.Errorf("rules.faults[%d].until: %s is in the past: remove the fault, or set a later time", i, f.Until.Format(time.RFC3339))
		}
	}
	return nil
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

func lineOf(err error) int {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

func (c *Changes) checkRules(w http.ResponseWriter, r *http.Request) (any, error) {
	var q rulesText
	if err := errors.Join(checkService(r.PathValue("service")), read(w, r, &q)); err != nil {
		return nil, err
	}
	d, mistakes := parse(q.Text)
	out := checked{OK: mistakes == nil, Errors: mistakes, Effects: []route.RuleEffect{}}
	if mistakes != nil {
		out.Summary = fmt.Sprintf("%d mistakes", len(mistakes))
		return out, nil
	}
	list, err := registry.List(r.Context(), c.d.Registry, r.PathValue("service"))
	if err != nil {
		return nil, err
	}
	rep := route.DryRun(&d.Rules, nil, list)
	out.Errors, out.Effects = []invalid{}, append(out.Effects, rep.Effects...)
	none := 0
	for _, e := range rep.Effects {
		if len(e.Instances) == 0 {
			none++
		}
	}
	out.Summary = "the rules are valid"
	if none > 0 {
		out.Summary += fmt.Sprintf(", and %d of them select no instance now", none)
	}
	return out, nil
}

// dryRunReport is the answer of api/rules/{service}/dryrun.
type dryRunReport struct {
	*route.Report
	// Now is the same with the present rules: what it has, too, is not the effect of the change. A
	// call that a share has sent by chance may count as moved in both.
	Now    counts `json:"now"`
	From   int    `json:"from"`             // processes whose calls were sampled
	Advice string `json:"advice,omitempty"` // what limits the report
}

// counts are the numbers of calls of a report.
type counts struct {
	Moved   int `json:"moved"`
	Failed  int `json:"failed"`
	Mocked  int `json:"mocked"`
	Faulted int `json:"faulted"`
}

func (c *Changes) dryRun(w http.ResponseWriter, r *http.Request) (any, error) {
	var q rulesText
	service := r.PathValue("service")
	if err := errors.Join(checkService(service), read(w, r, &q)); err != nil {
		return nil, err
	}
	d, mistakes := parse(q.Text)
	if mistakes != nil {
		return nil, mistake("the rules are not valid: %s", mistakes[0].Message)
	}
	list, err := registry.List(r.Context(), c.d.Registry, service)
	if err != nil {
		return nil, err
	}
	store, err := c.store()
	if err != nil {
		return nil, err
	}
	present, err := route.Load(r.Context(), store, service)
	if err != nil {
		return nil, err
	}
	calls, from := c.samples(r.Context(), service)
	now := route.DryRun(&present.Rules, calls, list)
	out := dryRunReport{Report: route.DryRun(&d.Rules, calls, list), From: from, Now: counts{now.Moved, now.Failed, now.Mocked, now.Faulted}}
	switch {
	case from == 0:
		out.Advice = "no process with an admin page called the service while the console looked: try again while there are calls"
	case len(out.Unknown) > 0:
		out.Advice = "the rules use metadata, which admin pages do not show: callers with a route.Recorder serve calls with them"
	}
	return out, nil
}

const (
	maxAsked    = 32 // processes
	asksAtOnce  = 8
	askPatience = 2 * time.Second
)

// samples returns calls of processes that call the service, and the number of processes: calls of
// the last minute, with metadata, if a caller serves them, and otherwise present ones.
func (c *Changes) samples(ctx context.Context, service string) (calls []route.Sample, from int) {
	if calls, from = c.recorded(ctx, service); from > 0 || c.d.Sample == nil {
		return calls, from
	}
	return c.d.Sample(service)
}

// recorded asks processes that call the service for the calls that they have recorded, and returns
// how many have answered.
func (c *Changes) recorded(ctx context.Context, service string) (calls []route.Sample, from int) {
	if c.d.Callers == nil {
		return nil, 0
	}
	var mu sync.Mutex // guards the results
	var wg sync.WaitGroup
	slots := make(chan struct{}, asksAtOnce)
	targets := c.d.Callers(service)
	for _, target := range targets[:min(len(targets), maxAsked)] {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			list, err := c.ask(ctx, target, service)
			if err != nil {
				return // most processes serve no calls
			}
			mu.Lock()
			defer mu.Unlock()
			calls, from = append(calls, list...), from+1
		})
	}
	wg.Wait()
	slices.SortFunc(calls, func(a, b route.Sample) int { return a.Time.Compare(b.Time) })
	return calls, from
}

func (c *Changes) ask(ctx context.Context, target, service string) ([]route.Sample, error) {
	client, err := c.d.Dial(target, anser.Codec(new(codec.JSON)))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var reply route.RecentReply
	err = client.Call(ctx, route.RecentMethod, &route.RecentRequest{Service: service}, &reply, anser.WithFailMode(anser.Failfast))
	return reply.Calls, err
}

func (c *Changes) planRules(w http.ResponseWriter, r *http.Request) (*plan, error) {
	store, service, err := c.rulesAt(r)
	if err != nil {
		return nil, err
	}
	var q rulesText
	if err := read(w, r, &q); err != nil {
		return nil, err
	}
	d, mistakes := parse(q.Text)
	if mistakes != nil {
		return nil, mistake("the rules are not valid: %s: %s", mistakes[0].Path, mistakes[0].Message)
	}
	author := access.From(r.Context()).Name
	return &plan{
		entry: audit.Entry{Action: "rules", Service: service, Text: fmt.Sprintf("on top of version %d", q.Version), Reason: q.Reason},
		do: func(ctx context.Context) (any, error) {
			next, err := route.Save(ctx, store, service, q.Version, d.Rules, author, q.Reason)
			if err != nil {
				return nil, err
			}
			return rulesOf(next), nil
		},
	}, nil
}

func (c *Changes) planRestore(w http.ResponseWriter, r *http.Request) (*plan, error) {
	store, service, err := c.rulesAt(r)
	if err != nil {
		return nil, err
	}
	var q struct {
		Version uint64  `json:"version"` // 0: no rules
		On      *uint64 `json:"on"`      // version that must be the present one; nil: any
		Reason  string  `json:"reason"`
	}
	if err := read(w, r, &q); err != nil {
		return nil, err
	}
	old, comment := new(route.Document), "back to no rules"
	if q.Version > 0 {
		if old, err = route.Version(r.Context(), store, service, q.Version); err != nil {
			return nil, asMistake(err)
		}
		comment = fmt.Sprintf("back to version %d", q.Version)
	}
	author := access.From(r.Context()).Name
	return &plan{
		entry: audit.Entry{Action: "rules", Service: service, Text: comment, Reason: q.Reason},
		do: func(ctx context.Context) (any, error) {
			now, err := route.Load(ctx, store, service)
			if err != nil {
				return nil, err
			}
			base := now.Version
			if q.On != nil {
				base = *q.On
			}
			if q.Reason != "" {
				comment += ": " + q.Reason
			}
			next, err := route.Save(ctx, store, service, base, old.Rules, author, comment)
			if err != nil {
				return nil, err
			}
			return rulesOf(next), c.adoptShare(ctx, service, &next.Rules, "the rules went "+comment)
		},
	}, nil
}
