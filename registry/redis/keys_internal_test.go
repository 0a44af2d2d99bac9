package redis

import (
	"math"
	"net/url"
	"strconv"
	"testing"

	"github.com/anser-rpc/anser/registry"
)

// FuzzRead checks that a list holds only records that are alive, valid and under their own keys.
func FuzzRead(f *testing.F) {
	in := registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Tags: map[string]string{"k": "v"}}
	record, err := registry.Encode(in)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(in.Key(), string(record), "200", int64(100))
	f.Add("other", string(record), "1e3", int64(100))
	f.Add(in.Key(), string(record[1:]), "nan", int64(100))
	f.Add(in.Key(), string(record), "-inf", int64(0))
	f.Fuzz(func(t *testing.T, key, record, expiry string, now int64) {
		w := &watch{registry: &Registry{prefix: "anser"}, service: "arith"}
		w.read(listing{now: now, records: map[string]string{key: record}, expiry: map[string]int64{key: milliseconds(expiry)}})
		list := w.view.Value
		switch {
		case len(list) > 0 && w.view.Problem != nil, len(list) > 1:
			t.Fatalf("%+v and %v", list, w.view.Problem)
		case len(list) == 1:
			at, _ := strconv.ParseFloat(expiry, 64)
			if list[0].Validate() != nil || list[0].Service != "arith" || list[0].Key() != key || math.Abs(at) < 1<<52 && int64(at) <= now {
				t.Fatalf("%q: %+v, which lives until %q at %d", key, list[0], expiry, now)
			}
		}
	})
}

// FuzzParse checks that every accepted target can be dialled.
func FuzzParse(f *testing.F) {
	f.Add("redis://h1:6379,h2:6379/shop/arith")
	f.Add("redis://[::1]:6379/x")
	f.Add("redis://u:p@h:1/x?y#z")
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
