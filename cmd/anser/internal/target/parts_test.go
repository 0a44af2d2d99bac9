package target_test

import (
	"slices"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
)

func TestServers(t *testing.T) {
	kind, list, err := target.Servers("etcd://h1:1,h2:2/prefix")
	if err != nil || kind != "etcd" || !slices.Equal(list, []string{"h1:1", "h2:2"}) {
		t.Errorf("%s %q, %v", kind, list, err)
	}
	if kind, list, err := target.Servers("file:///x.json"); err != nil || kind != "file" || len(list) != 0 {
		t.Errorf("%s %q, %v", kind, list, err)
	}
	if _, _, err := target.Servers("gopher://h:1"); err == nil {
		t.Error("an unknown kind was taken")
	}
	for typed, want := range map[string]bool{
		"etcd://h:1": true, "etcd://h:1,i:2/": true, "etcd://h:1/arith": false, "tls://h:1": false, "h:1": false, "file:///x.json": false, "etcd://": false,
	} {
		if got := target.IsRegistry(typed); got != want {
			t.Errorf("IsRegistry(%q) = %v", typed, got)
		}
	}
}

func TestSplit(t *testing.T) {
	for full, want := range map[string][2]string{
		"etcd://h:1/arith":                {"etcd://h:1", "arith"},
		"etcd://h:1/shop/arith":           {"etcd://h:1/shop", "arith"},
		"file:///etc/x.json/one":          {"file:///etc/x.json", "one"},
		"dns:///arith.shop.internal:8972": {"dns:///{service}.shop.internal:8972", "arith"},
	} {
		in, service, ok := target.Split(full, "dns:///{service}.shop.internal:8972")
		if got := [2]string{in, service}; !ok || got != want {
			t.Errorf("Split(%q) = %q, %v, want %q", full, got, ok, want)
		}
	}
	for _, full := range []string{"h:1", "a:1,b:2", "tls://h:1", "unix:///x"} {
		if _, _, ok := target.Split(full, "etcd://h:1"); ok {
			t.Errorf("%q was taken for a service of a registry", full)
		}
	}
}

func TestDrift(t *testing.T) {
	in := registry.Instance{Tags: map[string]string{"contract.orders.v1.Orders": "Place=1,Watch=2", "zone": "x"}}
	prints := target.Fingerprints(&in)
	if len(prints) != 2 || prints["orders.v1.Orders.Place"] != "1" || prints["orders.v1.Orders.Watch"] != "2" {
		t.Errorf("%v", prints)
	}
	list := target.DriftOf(map[string]map[string]string{
		"a": prints, "b": {"orders.v1.Orders.Place": "3", "orders.v1.Orders.Watch": "2"}, "c": {"orders.v1.Orders.Place": "1"}, "d": nil,
	})
	if len(list) != 1 || list[0].Method != "orders.v1.Orders.Place" || list[0].String() != "a, c against b" {
		t.Errorf("%+v", list)
	}
}
