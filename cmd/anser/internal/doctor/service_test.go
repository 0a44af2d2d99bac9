package doctor_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/route"
)

// fileRegistry returns a configuration for a registry in a file with instances of arith, and the
// registry.
func fileRegistry(t *testing.T, instances ...registry.Instance) (*doctor.Config, *registry.File) {
	t.Helper()
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "services.json"))
	r, err := registry.NewFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	for _, in := range instances {
		in.Service = "arith"
		if err := r.Register(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	return &doctor.Config{Source: target.Source{URL: "file://" + path}, Timeout: time.Minute}, r
}

// system examines a system, and returns the group of the registry and that of the first service.
func system(t *testing.T, c *doctor.Config, names ...string) (reg, service *doctor.Group) {
	t.Helper()
	groups := []*doctor.Group{}
	if _, err := c.System(t.Context(), names, func(g *doctor.Group) { groups = append(groups, g) }); err != nil {
		t.Fatal(err)
	}
	for len(groups) < 2 {
		groups = append(groups, new(doctor.Group))
	}
	return groups[0], groups[1]
}

func TestHealthySystem(t *testing.T) {
	c, _ := fileRegistry(t, registry.Instance{ID: "a", Address: serve(t), Version: "1.0"}, registry.Instance{ID: "b", Address: serve(t), Version: "1.0"})
	reg, g := system(t, c)
	expect(t, reg, "registry.latency", doctor.Pass, "lists 1 service ")
	expect(t, g, "instances", doctor.Pass, "2 instances answer")
	expect(t, g, "versions", doctor.Pass, "2 × version 1.0")
	expect(t, g, "contracts", doctor.Pass, "the 2 methods are the same in 2 instances")
	expect(t, g, "lease", doctor.Note, "records in a file do not expire")
	without(t, g, doctor.Warn, doctor.Fail)
	if len(g.Timings) != 2 || !strings.HasPrefix(g.Timings[0].Subject, "a at 127.0.0.1:") {
		t.Errorf("%+v", g.Timings)
	}
}

func TestInstancesThatCannotBeReached(t *testing.T) {
	none := unused(t)
	c, _ := fileRegistry(t,
		registry.Instance{ID: "a", Address: serve(t)},
		registry.Instance{ID: "gone", Address: none},
		registry.Instance{ID: "off", Address: unused(t), State: registry.Disabled})
	_, g := system(t, c)
	expect(t, g, "tcp", doctor.Fail, "gone: "+none+" cannot be reached: ", "refuses connections", "delete the record of gone if its process is gone")
	expect(t, g, "instances", doctor.Note, "1 of 3 instances answer")
	for _, f := range g.Findings {
		if f.Subject == "off" && f.Status != doctor.Note {
			t.Errorf("an instance that wants no calls: %+v", f)
		}
	}
	c, _ = fileRegistry(t, registry.Instance{ID: "gone", Address: none})
	_, g = system(t, c)
	expect(t, g, "instances", doctor.Fail, "none of the instances answers: every call fails")
	c, _ = fileRegistry(t, registry.Instance{ID: "a", Address: serve(t), State: registry.Draining})
	_, g = system(t, c)
	expect(t, g, "instances", doctor.Fail, "all instances are draining or disabled")
	c, _ = fileRegistry(t)
	reg, _ := system(t, c)
	expect(t, reg, "registry", doctor.Fail, "does not list its services")
	c, _ = fileRegistry(t, registry.Instance{ID: "a", Address: serve(t)})
	_, g = system(t, c, "other")
	expect(t, g, "instances", doctor.Fail, "no instance is registered")
}

func TestInstancesThatDiffer(t *testing.T) {
	more := anser.NewServer(silent, anser.NoSignals())
	anser.Handle(more, "Arith.Pow", func(_ context.Context, _ *anser.None) (*anser.None, error) { return new(anser.None), nil })
	tags := func(print string) map[string]string {
		return map[string]string{anser.ContractTag + "Arith": "Mul=" + print}
	}
	c, _ := fileRegistry(t,
		registry.Instance{ID: "a", Address: serve(t), Version: "1.0", Tags: tags("4c0d")},
		registry.Instance{ID: "b", Address: listen(t, more), Version: "2.0", Tags: tags("5f21")})
	_, g := system(t, c)
	expect(t, g, "versions", doctor.Warn, "1 × version 1.0, 1 × version 2.0", "rollout")
	expect(t, g, "contracts", doctor.Warn, "the contracts of Arith.Mul differ: a against b", "anser breaking OLD NEW")
	expect(t, g, "contracts", doctor.Warn, "methods that only some instances have: Arith.Add (1 of 2), Arith.Mul (1 of 2), Arith.Pow (1 of 2)")
	without(t, g, doctor.Fail)
}

func TestAddressThatOccursTwice(t *testing.T) {
	at := serve(t)
	c, _ := fileRegistry(t, registry.Instance{ID: "a", Address: at}, registry.Instance{ID: "b", Address: at})
	_, g := system(t, c)
	expect(t, g, "address", doctor.Warn, at+" is registered as a, b")
}

func TestRecordThatCannotBeRead(t *testing.T) {
	c, _ := fileRegistry(t, registry.Instance{ID: "a", Address: serve(t)})
	path := strings.TrimPrefix(c.Source.URL, "file://")
	if err := os.WriteFile(path, []byte(`[{"service":"arith","adress":"h:1"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	reg, _ := system(t, c)
	expect(t, reg, "registry", doctor.Fail, `line 1: unknown field "adress"`)
}

func TestRulesOfASystem(t *testing.T) {
	c, r := fileRegistry(t, registry.Instance{ID: "a", Address: serve(t), Version: "1.0"})
	save := func(text string) {
		t.Helper()
		var rules route.RuleSet
		if err := json.Unmarshal([]byte(text), &rules); err != nil {
			t.Fatal(err)
		}
		d, err := route.Load(t.Context(), r, "arith")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := route.Save(t.Context(), r, "arith", d.Version, rules, "ada", ""); err != nil {
			t.Fatal(err)
		}
	}
	save(`{"split": [{"name": "canary", "percent": 10, "to": {"version": "1.*"}}]}`)
	_, g := system(t, c)
	expect(t, g, "rules", doctor.Pass, "version 1 of the traffic rules is valid")
	save(`{"split": [{"name": "canary", "percent": 10, "to": {"version": "2.*"}}],
		"methods": [{"when": {"methods": "Arith.Pow"}, "attempts": 1}], "mocks": [{"name": "fixed", "when": {"methods": "Arith.Mul"}, "reply": {}}]}`)
	_, g = system(t, c)
	expect(t, g, "rules", doctor.Warn, "split[0] canary has no effect: it matches no instance")
	expect(t, g, "rules", doctor.Warn, "methods[0] has no effect: it matches no method: Arith.Pow")
	expect(t, g, "rules", doctor.Warn, "mocks[0] fixed answers calls in place of the servers")
	without(t, g, doctor.Fail)

	old, err := r.Load(t.Context(), "rules/arith")
	if err != nil {
		t.Fatal(err)
	}
	old.Data = []byte(`{"version": 3, "time": "2999-01-01T00:00:00Z", "rules": {}}`)
	if old.Revision, err = r.Save(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	_, g = system(t, c)
	expect(t, g, "clock", doctor.Warn, "version 3 of the rules was written", "in the future")
	old.Data = []byte(`{"rules": {"splits": []}}`)
	if _, err = r.Save(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	_, g = system(t, c)
	expect(t, g, "rules", doctor.Fail, "the traffic rules cannot be used", "splits", "anser rules rollback")
}

func TestLeasesInEtcd(t *testing.T) {
	m, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := m.Registry()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	at, none := serve(t), unused(t)
	for _, in := range []registry.Instance{{Service: "arith", ID: "a", Address: at}, {Service: "arith", ID: "wrong", Address: none}} {
		if err := r.Register(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	c := &doctor.Config{Source: target.Source{URL: "etcd://" + m.Endpoint()}, Timeout: time.Minute}
	reg, g := system(t, c)
	expect(t, reg, "registry", doctor.Pass, "the server is healthy")
	expect(t, reg, "clock", doctor.Pass, "the clock of the registry agrees")
	expect(t, reg, "registry.latency", doctor.Pass, "lists 1 service ")
	expect(t, g, "tcp", doctor.Fail, "wrong: ", "its process lives, since it renews its lease", "announces an address that is not reachable")
}
