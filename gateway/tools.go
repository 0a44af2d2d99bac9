package gateway

import (
	"net/http"
	"slices"
)

// toolsPath is where agents find the tools.
const toolsPath = "/mcp"

// same reports whether two parts of configurations say the same.
func (m *MCP) same(other *MCP) bool {
	return slices.Equal(m.Allow, other.Allow) && m.Compact == other.Compact && m.Resources == other.Resources
}

// forTools returns the part for what offers the tools: requests to HTTP servers are none.
func (m *MCP) forTools() *MCP {
	out := *m
	out.Allow = append(slices.Clone(m.Allow), "!Gateway.Proxy") // see proxyMethod
	return &out
}

// other serves the requests that are not calls, and that no route matches.
func (g *Gateway) other() http.Handler {
	none := g.notFound()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tools := g.plan.Load().tools; tools != nil && r.URL.Path == toolsPath {
			tools.ServeHTTP(w, r)
			return
		}
		none.ServeHTTP(w, r)
	})
}
