package change

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/cmd/anser/internal/operate"
	"github.com/anser-rpc/anser/route"
)

// fault is a fault that is injected. Clients end it at its time, whether a console runs or not.
type fault struct {
	Service string        `json:"service"`
	Method  string        `json:"method,omitempty"` // all methods if left out
	Share   float64       `json:"share"`            // percent of the calls
	Delay   time.Duration `json:"delay,omitempty"`  // nanoseconds
	Code    string        `json:"code,omitempty"`   // such as unavailable
	Until   time.Time     `json:"until"`
	Reason  string        `json:"reason,omitempty"`
}

// allMethods is the name of a fault without a method.
const allMethods = "all methods"

func (f *fault) name() string {
	if f.Method == "" {
		return allMethods
	}
	return f.Method
}

func (f *fault) rule() route.FaultRule {
	rule := route.FaultRule{Percent: f.Share, Delay: route.Duration(f.Delay), Until: f.Until.UTC()}
	if f.Method != "" {
		rule.When.Methods = route.Patterns{f.Method}
	}
	if f.Code != "" {
		rule.Error = &route.ErrorSpec{Code: f.Code, Message: "a fault of an operator"}
	}
	return rule
}

func (f *fault) String() string {
	text := fmt.Sprintf("%v %% of the calls of %s", f.Share, f.name())
	if f.Delay > 0 {
		text += fmt.Sprintf(" are delayed by %v", f.Delay)
	}
	switch {
	case f.Code != "" && f.Delay > 0:
		text += " and fail with " + f.Code
	case f.Code != "":
		text += " fail with " + f.Code
	}
	return text + " until " + f.Until.UTC().Format(time.RFC3339)
}

func (c *Changes) readFaults(_ http.ResponseWriter, r *http.Request) (any, error) {
	store, err := c.store()
	if err != nil {
		return nil, err
	}
	service := r.URL.Query().Get("service")
	if err := checkService(service); err != nil {
		return nil, err
	}
	d, err := route.Load(r.Context(), store, service)
	if err != nil {
		return nil, err
	}
	list := []fault{}
	for _, o := range operate.Faults(&d.Rules) {
		f := fault{Service: service, Share: o.Percent, Delay: time.Duration(o.Delay), Until: o.Until}
		if o.Name != allMethods {
			f.Method = o.Name
		}
		if o.Error != nil {
			f.Code = o.Error.Code
		}
		list = append(list, f)
	}
	return list, nil
}

func (c *Changes) planFault(w http.ResponseWriter, r *http.Request) (*plan, error) {
	var f fault
	if err := read(w, r, &f); err != nil {
		return nil, err
	}
	if err := checkService(f.Service); err != nil {
		return nil, err
	}
	if _, err := operate.AddFault(route.RuleSet{}, f.name(), f.rule()); err != nil {
		return nil, asMistake(err)
	}
	return c.planFaults(r, f.Service, f.Method, "fault: "+f.String(), f.Reason, func(rules route.RuleSet) (route.RuleSet, error) {
		return operate.AddFault(rules, f.name(), f.rule())
	}), nil
}

// planFaultEnd takes the service and the method of a fault from the query.
func (c *Changes) planFaultEnd(_ http.ResponseWriter, r *http.Request) (*plan, error) {
	q := r.URL.Query()
	f := fault{Service: q.Get("service"), Method: q.Get("method")}
	if err := checkService(f.Service); err != nil {
		return nil, err
	}
	return c.planFaults(r, f.Service, f.Method, "the fault in "+f.name()+" was removed", q.Get("reason"), func(rules route.RuleSet) (route.RuleSet, error) {
		next, ok := operate.RemoveFault(rules, f.name())
		if !ok {
			return rules, &respond.Error{Status: http.StatusNotFound, Text: fmt.Sprintf("%s has no fault in %s that the console has injected", f.Service, f.name())}
		}
		return next, nil
	}), nil
}

func (c *Changes) planFaults(r *http.Request, service, method, text, reason string, change func(route.RuleSet) (route.RuleSet, error)) *plan {
	author, comment := access.From(r.Context()).Name, text
	if reason != "" {
		comment += ": " + reason
	}
	return &plan{
		entry: audit.Entry{Action: "fault", Service: service, Subject: method, Text: text, Reason: reason},
		kind:  "fault",
		do: func(ctx context.Context) (any, error) {
			d, err := c.edit(ctx, service, author, comment, change)
			if err != nil {
				return nil, err
			}
			return rulesChange{d.Version}, nil
		},
	}
}
