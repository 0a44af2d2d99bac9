package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
)

// unchecked is a registry that checks no record, and whose leases this user may not read.
type unchecked []registry.Instance

func (u unchecked) Watch(ctx context.Context, _ string, update func([]registry.Instance), _ func(error)) error {
	update(u)
	<-ctx.Done()
	return ctx.Err()
}

func (unchecked) Leases(context.Context, string) ([]registry.Lease, error) {
	return nil, errors.New("etcdserver: permission denied \x1b[2J")
}

// A registry may list an address that no client can dial, and refuse to show leases.
func TestRegistryThatDoesNotCheck(t *testing.T) {
	c := &Config{Source: target.Source{URL: "etcd://127.0.0.1:2379"}, Timeout: time.Minute}
	s := &service{findings: new(findings), config: c, name: "arith", registry: &target.Registry{
		Resolver: unchecked{{Service: "arith", ID: "bad", Address: "10.0.0.9:0"}},
	}}
	if !s.load(t.Context()) {
		t.Fatalf("the instances were not read: %+v", s.list)
	}
	s.readLeases(t.Context())
	s.probe(t.Context())
	s.reachability()
	for _, want := range []Finding{
		{Check: "lease", Status: Note, Text: `the leases cannot be read: etcdserver: permission denied \x1b[2J`},
		{Check: "registry.records", Status: Fail, Subject: "bad", Text: "its address is not valid: ", Advice: "correct the record"},
		{Check: "instances", Status: Fail, Text: "none of the instances answers"},
	} {
		found := false
		for _, f := range s.list {
			if f.Check == want.Check && f.Status == want.Status && f.Subject == want.Subject && strings.Contains(f.Text, want.Text) && strings.Contains(f.Advice, want.Advice) {
				found = true
				Asserted(f)
			}
		}
		if !found {
			t.Errorf("no %+v in %+v", want, s.list)
		}
	}
}
