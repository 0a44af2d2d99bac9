package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// The lease of an instance that cannot be reached says whether its process lives.
func TestAdviceByLease(t *testing.T) {
	s := &service{instances: []registry.Instance{{ID: "a", Service: "arith", Address: "h:1"}}}
	for name, test := range map[string]struct {
		leases map[string]registry.Lease
		want   string
	}{
		"unknown": {nil, "start the server"},
		"endless": {map[string]registry.Lease{"a": {Key: "a"}}, "delete the record of a if its process is gone"},
		"fresh":   {map[string]registry.Lease{"a": {Key: "a", TTL: 9 * time.Second, Left: 8 * time.Second}}, "its process lives"},
		"late":    {map[string]registry.Lease{"a": {Key: "a", TTL: 9 * time.Second, Left: 2 * time.Second}}, "the lease was not renewed for 7 seconds, and the record goes in 2 seconds"},
	} {
		s.leases = test.leases
		if got := s.advice(0, "start the server"); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestLeasesOfInstancesThatAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		lease registry.Lease
		want  string // "" for no finding
	}{
		"fresh":   {registry.Lease{Key: "a", TTL: 9 * time.Second, Left: 8 * time.Second}, ""},
		"late":    {registry.Lease{Key: "a", TTL: 9 * time.Second, Left: 2 * time.Second}, "the lease of 9 seconds was not renewed for 7 seconds"},
		"endless": {registry.Lease{Key: "a"}, "records without a lease, which stay when their processes end: a"},
	} {
		s := &service{
			findings: new(findings), config: new(Config), instances: []registry.Instance{{ID: "a", Service: "arith", Address: "h:1"}},
			reached: []bool{true}, leases: map[string]registry.Lease{"a": test.lease},
		}
		s.standing()
		switch {
		case test.want == "" && len(s.list) == 0:
		case len(s.list) != 1 || s.list[0].Status != Warn || s.list[0].Advice == "" || !strings.Contains(s.list[0].Text, test.want) || test.want == "":
			t.Errorf("%s: %+v, want %q", name, s.list, test.want)
		default:
			Asserted(s.list[0])
		}
	}
}

// An address that is local means another machine to each client of a registry elsewhere.
func TestLocalAddressInARemoteRegistry(t *testing.T) {
	for url, want := range map[string]int{"etcd://10.0.0.1:2379": 1, "etcd://127.0.0.1:2379": 0, "file:///x.json": 0} {
		s := &service{findings: new(findings), config: &Config{}, instances: []registry.Instance{{Service: "arith", Address: "127.0.0.1:1"}, {Service: "arith", Address: "10.0.0.7:1"}}}
		s.config.Source.URL = url
		s.addresses()
		if len(s.list) != want {
			t.Errorf("%s: %+v", url, s.list)
		}
		for _, f := range s.list {
			if f.Check != "address" || f.Status != Warn || !strings.Contains(f.Text, "127.0.0.1:1 means the machine of each client") {
				t.Errorf("%s: %+v", url, f)
			}
			Asserted(f)
		}
	}
}

// The record of an instance says another contract than the server that answers at its address.
func TestStaleRecord(t *testing.T) {
	s := &service{findings: new(findings), instances: []registry.Instance{{ID: "a"}}}
	s.stale(0, map[string]string{"A.B": "1", "A.C": "2"}, map[string]string{"A.B": "1"})
	if len(s.list) != 0 {
		t.Errorf("%+v", s.list)
	}
	s.stale(0, map[string]string{"A.B": "1", "A.C": "2"}, map[string]string{"A.B": "3", "A.C": "4"})
	if len(s.list) != 1 || s.list[0].Subject != "a" || !strings.Contains(s.list[0].Text, "another contract of A.B") {
		t.Fatalf("%+v", s.list)
	}
	Asserted(s.list[0])
}
