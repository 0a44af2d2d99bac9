package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/mcp"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// mcpSource is the source of "anser mcp", with what agents may read.
type mcpSource struct {
	*mcp.Services
	allowed *mcp.Server
	store   registry.Store // keeps the traffic rules, or nil
}

const (
	rulesPrefix   = "anser://rules/"
	explainPrefix = "anser://explanations/"
)

// Resources implements [mcp.Reader].
func (s *mcpSource) Resources(ctx context.Context) (map[string]string, error) {
	list := make(map[string]string)
	if s.store != nil {
		names, err := s.Names(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			list[rulesPrefix+name] = "The traffic rules of the service " + name + "."
		}
	}
	methods, err := s.Methods(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range methods {
		if s.allowed.Allows(m.Name) {
			list[explainPrefix+m.FullName()] = "The instance to which a call of " + m.FullName() + " would go now, and why not to the others."
		}
	}
	return list, nil
}

// Read implements [mcp.Reader].
func (s *mcpSource) Read(ctx context.Context, uri string) (json.RawMessage, error) {
	if name, ok := strings.CutPrefix(uri, rulesPrefix); ok {
		d, err := route.Load(ctx, s.store, name)
		if err != nil {
			return nil, err
		}
		return json.Marshal(d)
	}
	methods, err := s.Methods(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range methods {
		if uri == explainPrefix+m.FullName() {
			c, err := s.ClientOf(ctx, m)
			if err != nil {
				return nil, err
			}
			x, err := c.Explain(ctx, m.Name)
			if err != nil {
				return nil, err
			}
			return json.Marshal(x)
		}
	}
	return nil, fmt.Errorf("there is no resource %s", uri)
}
