package route

import (
	"fmt"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// Match reports whether the patterns match.
func (p Patterns) Match(text string) bool { return p.match(text) }

// Sides returns the first instance that the rules allow for each of n calls with different users.
func Sides(r *RuleSet, by string, n int, instances []registry.Instance) []string {
	p := compile(r, new(Caller), nil)
	var sides []string
	for i := range n {
		md := map[string]string{}
		if by != "" {
			md[by] = fmt.Sprintf("user-%d", i)
		}
		sides = append(sides, p.left("S.M", md, nil, instances)[0])
	}
	return sides
}

// Routed returns the routing function for a client without properties of its own.
func Routed(r *RuleSet) func(method string, md anser.Metadata) *anser.Route {
	p := compile(r, new(Caller), nil)
	return func(method string, md anser.Metadata) *anser.Route { return p.route(method, md, nil) }
}
