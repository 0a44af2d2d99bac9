package consul_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

// entry returns the only service with that name in the catalogue.
func entry(t *testing.T, c *api.Client, service string) *api.ServiceEntry {
	t.Helper()
	list, _, err := c.Health().Service(service, "", false, nil)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d services %q in the catalogue, %v; want 1", len(list), service, err)
	}
	return list[0]
}

func TestServiceInConsul(t *testing.T) {
	s, prefix := shared, freshPrefix()
	c := s.use(t)
	r := s.dial(t, consul.Prefix(prefix))
	for _, test := range []struct {
		in                         registry.Instance
		address, socket, status    string
		port, weight               int
		meta                       map[string]string
		recordInTag, recordMissing bool
	}{
		{
			in: registry.Instance{
				Address: "10.0.0.1:8972", Group: "blue", Version: "1.2", Zone: "north", Weight: 50,
				Tags: map[string]string{"build": "2f6b", "zone": "not this", "no key": "x"},
			},
			address: "10.0.0.1", port: 8972, weight: 50, status: api.HealthPassing,
			meta: map[string]string{"group": "blue", "version": "1.2", "zone": "north", "build": "2f6b", "no key": "", "state": ""},
		},
		{
			in:      registry.Instance{Address: "[2001:db8::1]:1", State: registry.Draining, Weight: registry.MaxWeight},
			address: "2001:db8::1", port: 1, weight: 65535, status: api.HealthWarning, meta: map[string]string{"state": "draining"},
		},
		{
			in:     registry.Instance{Address: "unix:///run/a.sock", State: registry.Disabled},
			socket: "/run/a.sock", weight: registry.DefaultWeight, status: api.HealthWarning, meta: map[string]string{"state": "disabled"},
		},
		{
			in:      registry.Instance{Address: "wss://10.0.0.7:443/anser"},
			address: "10.0.0.7", port: 443, weight: registry.DefaultWeight, status: api.HealthPassing,
			meta: map[string]string{"address": "wss://10.0.0.7:443/anser"},
		},
		{
			in:      registry.Instance{Address: "h:1", Tags: map[string]string{"blob": strings.Repeat("x", 5000)}},
			address: "h", port: 1, weight: registry.DefaultWeight, status: api.HealthPassing, recordInTag: true,
		},
	} {
		test.in.Service, test.in.ID = "arith", "one"
		regtest.Register(t, r, test.in)
		e := entry(t, c, prefix+"arith")
		svc := e.Service
		if svc.Address != test.address || svc.Port != test.port || svc.SocketPath != test.socket || svc.Weights.Passing != test.weight {
			t.Errorf("%s is %q port %d socket %q weight %d", test.in.Address, svc.Address, svc.Port, svc.SocketPath, svc.Weights.Passing)
		}
		if got := e.Checks.AggregatedStatus(); got != test.status {
			t.Errorf("%s in state %v has the status %s, want %s", test.in.Address, test.in.State, got, test.status)
		}
		for key, want := range test.meta {
			if svc.Meta[key] != want {
				t.Errorf("%s has the metadata %s=%q, want %q", test.in.Address, key, svc.Meta[key], want)
			}
		}
		var record registry.Instance
		text := svc.Meta["anser"]
		if test.recordInTag && len(svc.Tags) == 1 {
			text = strings.TrimPrefix(svc.Tags[0], "anser=")
		}
		if err := json.Unmarshal([]byte(text), &record); err != nil || !record.Equal(test.in) {
			t.Errorf("the record is %.200s, %v", text, err)
		}
		list, err := registry.List(t.Context(), r, "arith")
		if err != nil || len(list) != 1 || !list[0].Equal(test.in) {
			t.Errorf("the list is %.300v, %v; want %.300v", list, err, test.in)
		}
	}
}

// Maintenance mode set by an operator is a state, and survives a new registration of the instance.
func TestMaintenance(t *testing.T) {
	s, prefix := shared, freshPrefix()
	c := s.use(t)
	r := s.dial(t, consul.Prefix(prefix))
	in := regtest.Instance("h1:1")
	regtest.Register(t, r, in)
	state := func() string {
		list, err := registry.List(t.Context(), r, "arith")
		if err != nil || len(list) != 1 {
			return "?"
		}
		return list[0].State.String()
	}
	id := entry(t, c, prefix+"arith").Service.ID
	if err := c.Agent().EnableServiceMaintenance(id, "looking into it"); err != nil {
		t.Fatal(err)
	}
	regtest.Eventually(t, regtest.Patience, "a disabled instance", func() bool { return state() == "disabled" })
	in.Weight = 7
	regtest.Register(t, r, in)
	successor := s.dial(t, consul.Prefix(prefix))
	regtest.Register(t, successor, in)
	if got := state(); got != "disabled" {
		t.Errorf("after another registration the instance is %s, want disabled", got)
	}
	if err := c.Agent().DisableServiceMaintenance(id); err != nil {
		t.Fatal(err)
	}
	regtest.Eventually(t, regtest.Patience, "an instance that is up", func() bool { return state() == "up" })
}

func TestServicesOfOthers(t *testing.T) {
	s, prefix := shared, freshPrefix()
	c := s.use(t)
	err := c.Agent().ServiceRegister(&api.AgentServiceRegistration{
		ID: prefix + "theirs", Name: prefix + "arith", Address: "10.0.0.9", Port: 80,
		Tags: []string{"canary", "team=a"}, Meta: map[string]string{"zone": "north", "build": "7"},
		Weights: &api.AgentWeights{Passing: 30, Warning: 1},
		Check:   &api.AgentServiceCheck{CheckID: prefix + "check", TTL: "1h", Status: api.HealthPassing},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Agent().ServiceDeregister(prefix + "theirs") })
	r := s.dial(t, consul.Prefix(prefix))
	want := registry.Instance{
		ID: prefix + "theirs", Service: "arith", Address: "10.0.0.9:80", Zone: "north", Weight: 30,
		Tags: map[string]string{"canary": "", "team": "a", "build": "7"},
	}
	list, err := registry.List(t.Context(), r, "arith")
	if err != nil || len(list) != 1 || !list[0].Equal(want) {
		t.Errorf("the list is %+v, %v; want %+v", list, err, want)
	}
	w := regtest.NewWatch(t, r)
	w.Expect("10.0.0.9:80")
	if err := c.Agent().UpdateTTL(prefix+"check", "broken", api.HealthCritical); err != nil {
		t.Fatal(err)
	}
	w.Await("")
	if err := c.Agent().ServiceRegister(&api.AgentServiceRegistration{ID: prefix + "portless", Name: prefix + "arith", Address: "h"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Agent().ServiceDeregister(prefix + "portless") })
	w.AwaitTrouble(prefix + "portless")
}

// A process whose key was taken over leaves it to the new owner, even after the agent has lost
// both records.
func TestKeyTakenOverIsNotFoughtFor(t *testing.T) {
	var logs testlog.Buffer
	s, prefix := shared, freshPrefix()
	old := s.dial(t, consul.Prefix(prefix), consul.Logger(logs.Logger()))
	regtest.Register(t, old, regtest.Instance("h1:1"))
	regtest.Register(t, old, regtest.Instance("h2:1"))
	fresh := s.dial(t, consul.Prefix(prefix))
	taken := regtest.Instance("h1:1")
	taken.Version = "2"
	regtest.Register(t, fresh, taken)
	checks := entryOf(t, s.use(t), prefix+"arith", "h1:1").Checks
	if len(checks) != 2 { // the host's and the new owner's
		t.Errorf("the instance has %d checks, want 2: %+v", len(checks), checks)
	}
	regtest.Eventually(t, regtest.Patience, "the old owner letting go", func() bool { return strings.Contains(logs.String(), "taken an instance over") })
	regtest.Back(t, regtest.BackWithin, "the record of the new owner", func() { s.forgetLeases(t) }, func() bool {
		list, err := registry.List(t.Context(), old, "arith")
		return err == nil && len(list) == 2 && list[0].Equal(taken)
	})
}

func entryOf(t *testing.T, c *api.Client, service, key string) *api.ServiceEntry {
	t.Helper()
	list, _, err := c.Health().Service(service, "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.HasSuffix(e.Service.ID, ":"+key) {
			return e
		}
	}
	t.Fatalf("no instance %q of %q", key, service)
	return nil
}

// A check that has failed for lack of heartbeats passes again with the next one.
func TestFailedCheckIsFoundAgain(t *testing.T) {
	s, prefix := shared, freshPrefix()
	r := s.dial(t, consul.Prefix(prefix), consul.TTL(10*time.Second))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	w := regtest.NewWatch(t, s.dial(t, consul.Prefix(prefix)))
	w.Expect("h1:1")
	c := s.use(t)
	checks := entry(t, c, prefix+"arith").Checks
	// The next heartbeat may arrive before the watcher's query: then the check fails once more.
	regtest.Eventually(t, regtest.Patience, "an empty list", func() bool {
		for _, check := range checks {
			if check.ServiceID == "" {
				continue
			}
			if err := c.Agent().UpdateTTL(check.CheckID, "no sign of life", api.HealthCritical); err != nil {
				t.Fatal(err)
			}
		}
		return w.Seen("")
	})
	w.Await("h1:1")
}

// Consul comes back without its data and at a lower index: its present state counts, and servers
// announce themselves again.
func TestConsulComesBackEmpty(t *testing.T) {
	s := newServer(t, t.TempDir())
	s.start(t)
	announcer, client := s.dial(t), s.dial(t)
	for _, address := range []string{"h1:1", "h2:1", "h3:1"} {
		regtest.Register(t, announcer, regtest.Instance(address))
	}
	if _, err := announcer.Save(t.Context(), registry.Document{Name: "rules", Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	w := regtest.NewWatch(t, client)
	w.Await("h1:1 h2:1 h3:1")
	regtest.Back(t, 4*regtest.BackWithin, "all instances", func() {
		before := index(t, s)
		s.Stop()
		w.AwaitTrouble("")
		if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
			t.Fatal(err)
		}
		s.start(t)
		if now := index(t, s); now >= before {
			t.Logf("the index went from %d to %d: not backwards this time", before, now)
		}
	}, func() bool { return regtest.Addresses(t, client) == "h1:1 h2:1 h3:1" })
	w.Await("h1:1 h2:1 h3:1")
	if doc, err := client.Load(t.Context(), "rules"); err != nil || doc.Revision != 0 {
		t.Errorf("the document is %+v, %v; want none", doc, err)
	}
}

func index(t *testing.T, s *server) uint64 {
	t.Helper()
	_, meta, err := s.use(t).Catalog().Services(nil)
	if err != nil {
		t.Fatal(err)
	}
	return meta.LastIndex
}
