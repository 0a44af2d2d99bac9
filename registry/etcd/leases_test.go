package etcd_test

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

func TestLeases(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	r := shared.dial(t, etcd.Prefix(prefix), etcd.TTL(time.Minute))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	for key, value := range map[string]string{
		"h2:1": `{"service":"arith","address":"h2:1"}`, "broken": "{", // neither has a lease
	} {
		if _, err := raw.Put(t.Context(), prefix+"/arith/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	list, err := r.Leases(t.Context(), "arith")
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if l := list[0]; l.Key != "h1:1" || l.TTL != time.Minute || l.Left <= 0 || l.Left > time.Minute {
		t.Errorf("%+v", l)
	}
	if l := list[1]; l != (registry.Lease{Key: "h2:1"}) {
		t.Errorf("%+v, want one that never expires", l)
	}
	if list, err := r.Leases(t.Context(), "nothing"); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := r.Leases(t.Context(), "a/b"); err == nil {
		t.Error("a name that is not valid was taken")
	}
}
