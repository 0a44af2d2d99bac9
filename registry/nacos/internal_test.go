package nacos

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"

	"github.com/anser-rpc/anser/registry"
)

// FuzzList checks that, whatever Nacos returns, a list has valid instances of its service, each
// key once and in order, and does not depend on the order of Nacos's list.
func FuzzList(f *testing.F) {
	in := registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north", Tags: map[string]string{"k": "v"}}
	metadata, err := metadataOf(in, "owner", 7)
	if err != nil {
		f.Fatal(err)
	}
	where := placeOf(in)
	ours := nacosInstance{IP: where.ip, Port: where.port, Cluster: where.cluster, Weight: 1, Metadata: metadata}
	for _, all := range [][]nacosInstance{
		{ours}, {ours, {IP: "10.0.0.2", Port: 1, Weight: 0.5, Cluster: "DEFAULT", Enabled: new(false)}}, {ours, ours}, {{IP: "::1", Port: -1}}, {{Weight: 1e300}},
	} {
		f.Add([]byte(encodeJSON(all)))
	}
	f.Add([]byte(`[null,{"weight":1e-300,"metadata":{"anser.record":"{}"}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []nacosInstance
		if json.Unmarshal(data, &all) != nil {
			return
		}
		list, problem := listOf("arith", all)
		keys := make(map[string]bool)
		for _, in := range list {
			if err := in.Validate(); err != nil || in.Service != "arith" || keys[in.Key()] {
				t.Fatalf("%+v in %+v: %v", in, list, err)
			}
			keys[in.Key()] = true
		}
		if len(list) < len(all) && len(all) == 1 && problem == nil {
			t.Fatalf("%+v is left out without a word", all)
		}
		sorted := slices.Clone(list)
		if registry.Sort(sorted); !registry.Equal(sorted, list) {
			t.Fatalf("out of order: %+v", list)
		}
		stamps := make(map[int64]bool) // of two with the same stamp, which should not happen, either may be listed
		for _, h := range all {
			if stamps[h.stamp()] {
				return
			}
			stamps[h.stamp()] = true
		}
		slices.Reverse(all)
		if again, _ := listOf("arith", all); !registry.Equal(again, list) {
			t.Fatalf("in another order %+v becomes %+v", list, again)
		}
	})
}

// FuzzParse checks that every accepted target can be dialled.
func FuzzParse(f *testing.F) {
	f.Add("nacos://h1:8848,h2:8848/team-a/arith")
	f.Add("nacos://[::1]:8848/x")
	f.Add("nacos://h:1")
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse(target)
		if err != nil {
			return
		}
		addresses, _, service, err := Parse(u)
		if err == nil && (targets.CheckServers(addresses) != nil || registry.CheckService(service) != nil) {
			t.Fatalf("%q: %q, %q", target, addresses, service)
		}
	})
}
