package change

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/cmd/anser/internal/operate"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// instanceChange is the body of POST api/instances.
type instanceChange struct {
	Service  string `json:"service"`
	Instance string `json:"instance"` // key in the registry
	operate.Change
	Reason string `json:"reason"`
}

// rulesChange is the answer to a change of rules.
type rulesChange struct {
	Version uint64 `json:"version"` // of the rules
}

func (c *Changes) planInstance(w http.ResponseWriter, r *http.Request) (*plan, error) {
	var q instanceChange
	if err := read(w, r, &q); err != nil {
		return nil, err
	}
	if err := checkService(q.Service); err != nil {
		return nil, err
	}
	list, err := registry.List(r.Context(), c.d.Registry, q.Service)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(in registry.Instance) bool { return in.Key() == q.Instance })
	if at < 0 {
		return nil, &respond.Error{Status: http.StatusNotFound, Text: fmt.Sprintf("%s has no instance %q", q.Service, q.Instance), Advice: "it may have left: look at the list again"}
	}
	if _, err := operate.SetInstance(route.RuleSet{}, list[at], q.Change); err != nil {
		return nil, asMistake(err)
	}
	author := access.From(r.Context()).Name
	return &plan{
		entry: audit.Entry{Action: "instance", Service: q.Service, Subject: q.Instance, Text: q.Change.String(), Reason: q.Reason},
		do: func(ctx context.Context) (any, error) {
			comment := q.Instance + ": " + q.Change.String()
			if q.Reason != "" {
				comment += ": " + q.Reason
			}
			d, err := c.edit(ctx, q.Service, author, comment, func(rules route.RuleSet) (route.RuleSet, error) {
				return operate.SetInstance(rules, list[at], q.Change)
			})
			if err != nil {
				return nil, err
			}
			return rulesChange{d.Version}, nil
		},
	}, nil
}
