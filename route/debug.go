package route

import (
	"context"
	"slices"

	"github.com/anser-rpc/anser"
)

// ExplainMethod is the method that [ServeExplain] registers, for the JSON codec or MessagePack:
// its request is [ExplainRequest], and its reply anser.Explanation.
const ExplainMethod = "Route.Explain"

// ExplainRequest asks where a call would go.
type ExplainRequest struct {
	Service  string            `json:"service"`
	Method   string            `json:"method"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// ServeExplain adds the method [ExplainMethod] to the server. It reports to authorized callers
// where the next calls of the clients would go. The clients are named by their services; the map
// must not be modified afterwards.
func ServeExplain(s *anser.Server, clients map[string]*anser.Client) error {
	return anser.Handle(s, ExplainMethod, func(ctx context.Context, q *ExplainRequest) (*anser.Explanation, error) {
		c := clients[q.Service]
		if c == nil {
			var names []string
			for name := range clients {
				names = append(names, name)
			}
			slices.Sort(names)
			return nil, anser.Errorf(anser.NotFound, "this process has no client for the service %q: it has %q", q.Service, names)
		}
		return c.Explain(anser.WithMetadata(ctx, q.Metadata), q.Method)
	}, anser.Idempotent())
}
