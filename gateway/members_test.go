package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

type (
	// Kept is embedded by a pointer, which the contract has as a field.
	Kept struct{ Until string }

	Line struct {
		Item  string `json:"item"`
		Count int
	}
	order struct {
		*Kept
		Self  *order
		Lines []Line
		By    map[string]Line
		Pair  [2]Line
		Any   any
		Raw   json.RawMessage
		Deep  [][]Line
		Note  string `json:"note,omitempty"`
	}
	shop struct{}
)

func (shop) Move(_ context.Context, from, to Line) (int, error) { return from.Count + to.Count, nil }

// A member that the request does not have is refused at the gateway, as its own server would.
func TestUnknownMembers(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "shop"}, func(s *anser.Server) {
		anser.Handle(s, "Shop.Order", func(_ context.Context, in *order) (*Line, error) { return &Line{Count: len(in.Lines)}, nil })
		anser.Handle(s, "Shop.List", func(_ context.Context, in *[]Line) (*Line, error) { return &Line{Count: len(*in)}, nil })
		if err := s.RegisterName("Move", shop{}); err != nil {
			t.Error(err)
		}
	})
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "shop", 3)
	for _, c := range []struct{ method, body, unknown string }{
		{"Shop.Order", `{"Lines": [{"item": "a", "Count": 1}], "note": ""}`, ""},
		{"Shop.Order", ` { "lines" : [ { "ITEM" : "}" , "count" : -1.5e0 } ] , "Self" : { "Self" : null } } `, "1.5"},
		{"Shop.Order", `{"By": {"any name": {"item": "\"]"}}, "Pair": [{"item": "a"}, {}], "Any": {"x": [{"y": 1}]}, "Raw": {"z": 1}}`, ""},
		{"Shop.Order", `{"Until": "now", "Kept": {"Until": "now"}}`, "Kept"},
		{"Shop.Order", `{"Until": "now", "Self": {"Until": "then"}}`, ""},
		{"Shop.Order", `{"Deep": [[{"item": "not described"}]]}`, ""},
		{"Shop.Order", `{}`, ""},
		{"Shop.Order", `null`, ""},
		{"Shop.Order", `{"not": ""}`, `"not": did you mean "note"?`},
		{"Shop.Order", `{"Lines": [{}, {"itme": "a"}]}`, `"itme": did you mean "item"?`},
		{"Shop.Order", `{"By": {"any name": {"cuont": 1}}}`, `"cuont": did you mean "Count"?`},
		{"Shop.Order", `{"Pair": [{}, {"x": 1}]}`, `"x"`},
		{"Shop.Order", `{"Self": {"Self": {"\u0078": 1}}}`, `"x"`},
		{"Shop.List", `[{"item": "a"}, {}]`, ""},
		{"Shop.List", `[{"item": "a"}, {"x": 1}]`, `"x"`},
		{"Move.Move", `[{"item": "a"}, {"Count": 1}]`, ""},
		{"Move.Move", `{"arg1": {"item": "a"}, "arg2": {"Count": 1}}`, ""},
		{"Move.Move", `[{"item": "a"}, {"x": 1}]`, `"x"`},
		{"Move.Move", `{"arg1": {"item": "a"}, "arg3": {}}`, `"arg3"`},
	} {
		before := g.Stats().Calls
		status, body := post(t, "http://"+addr+"/"+c.method, c.body)
		passed := g.Stats().Calls - before
		var problem struct{ Detail string }
		json.Unmarshal([]byte(body), &problem)
		switch {
		case !strings.HasPrefix(c.unknown, `"`) && passed != 1:
			t.Errorf("%s %s is not forwarded: %d %s", c.method, c.body, status, body)
		case c.unknown == "" && status != 200:
			t.Errorf("%s %s: %d %s", c.method, c.body, status, body)
		case strings.HasPrefix(c.unknown, `"`) && (status != 400 || passed != 0 || !strings.Contains(problem.Detail, "has no member "+c.unknown)):
			t.Errorf("%s %s: %d %s, and %d calls, want %s", c.method, c.body, status, body, passed, c.unknown)
		}
	}
	// A function with one result answers with it alone in JSON-RPC, as its own server does.
	for _, params := range []string{`[{"Count": 1}, {"Count": 2}]`, `{"arg1": {"Count": 1}, "arg2": {"Count": 2}}`} {
		if _, body := post(t, "http://"+addr+"/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"Move.Move","params":`+params+`}`); !strings.Contains(body, `"result":3`) {
			t.Errorf("%s: %s", params, body)
		}
	}
	// Connect ignores such members, as everywhere.
	if status, body := post(t, "http://"+addr+"/Shop/Order", `{"x": 1}`, "Connect-Protocol-Version", "1"); status != 200 {
		t.Errorf("Connect: %d %s", status, body)
	}
}
