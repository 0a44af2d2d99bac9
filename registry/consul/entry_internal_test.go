package consul

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
)

// An answer without the parts that every entry has comes from something else than an agent, for
// example a proxy.
func TestEntriesThatAreNotWhole(t *testing.T) {
	c := defaults()
	for _, text := range []string{
		`[null]`, `[{}]`, `[{"Service":{"Service":"arith","Port":1,"Address":"10.0.0.1"}}]`, `[{"Node":{}}]`,
		`[{"Node":{},"Service":{"Service":"arith","Port":1,"Address":"10.0.0.1"},"Checks":[null]}]`,
	} {
		var all []*api.ServiceEntry
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		if list, broken := c.instances("arith", all); len(list) != 0 || len(broken) != 1 {
			t.Errorf("%s: %+v, %v; want one that is broken", text, list, broken)
		}
	}
}

// FuzzEntries checks that, whatever an agent answers, a list holds valid instances of its service,
// each key once and in order.
func FuzzEntries(f *testing.F) {
	c := defaults()
	in := registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"}
	record, err := registry.Encode(in)
	if err != nil {
		f.Fatal(err)
	}
	entry := func(id string, meta map[string]string) *api.ServiceEntry {
		return &api.ServiceEntry{
			Node:    &api.Node{Address: "10.0.0.9"},
			Service: &api.AgentService{ID: id, Service: "arith", Port: 8972, Address: "10.0.0.1", Meta: meta, Tags: []string{"a=b", "c"}},
			Checks:  api.HealthChecks{{CheckID: "x", Status: api.HealthPassing}},
		}
	}
	for _, all := range [][]*api.ServiceEntry{
		{entry(c.serviceID(in), map[string]string{recordKey: string(record)})}, {entry("foreign", map[string]string{"zone": "z"})}, {entry("a", nil), entry("a", nil), nil},
	} {
		data, err := json.Marshal(all)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []*api.ServiceEntry
		if json.Unmarshal(data, &all) != nil {
			return
		}
		list, broken := c.instances("arith", all)
		if len(list)+len(broken) > len(all) {
			t.Fatalf("%d entries become %d instances and %d errors", len(all), len(list), len(broken))
		}
		keys := make(map[string]bool)
		for _, in := range list {
			if err := in.Validate(); err != nil || in.Service != "arith" || keys[in.Key()] {
				t.Fatalf("%+v in %+v: %v", in, list, err)
			}
			keys[in.Key()] = true
		}
		sorted := slices.Clone(list)
		if registry.Sort(sorted); !registry.Equal(sorted, list) {
			t.Fatalf("out of order: %+v", list)
		}
	})
}
