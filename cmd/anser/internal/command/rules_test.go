package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

const canaryRules = `
rules:
  split:
  - name: canary
    percent: 100
    to: {version: "2.*"}
`

// twoVersions makes a registry with two instances of arith, and returns its URL, the registry and
// the address of the first.
func twoVersions(t *testing.T) (url string, file *registry.File, one string) {
	t.Helper()
	one = serve(t)
	url, file = fileRegistry(t,
		registry.Instance{Service: "arith", ID: "arith-1", Address: one, Version: "1.0"},
		registry.Instance{Service: "arith", ID: "arith-2", Address: serve(t), Version: "2.0"})
	t.Setenv(target.RegistryVariable, url)
	return url, file, one
}

func TestRules(t *testing.T) {
	twoVersions(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	run(t, "rules", "get", "arith").expect(t, 0, "rules: {}")
	run(t, "rules", "history", "arith").expect(t, 0, "arith has no rules")
	run(t, "explain", "arith", "Arith.Mul").expect(t, 0, "rules     none", "arith-1", "arith-2", "balancer  p2c")

	write(strings.Replace(canaryRules, "percent", "percnt", 1))
	run(t, "rules", "set", "arith", "-f", file).expect(t, 2, "rules.split[0].percnt: unknown key, did you mean percent?")
	write("rules: [")
	run(t, "rules", "set", "arith", "-f", file).expect(t, 2, "neither YAML nor JSON")
	write(`rules: {faults: [{percent: 1, abort: true, until: "2020-01-01T00:00:00Z"}]}`)
	run(t, "rules", "set", "arith", "-f", file).expect(t, 2, "rules.faults[0].until", "is in the past")
	run(t, "rules", "set", "arith").expect(t, 2, "name a file with -f")

	write(canaryRules)
	run(t, "rules", "dry-run", "arith", "-f", file).expect(t, 0, "The rules are valid", "split[0] canary  arith-2")
	run(t, "rules", "set", "arith", "-f", file, "-m", "all to 2.0", "--author", "ada").expect(t, 0, "at version 1")
	run(t, "explain", "arith", "Arith.Mul").expect(t, 0, "version 1", "split[0] canary: 100%: leaves 1", "pick      arith-2")
	run(t, "call", "arith", "Arith.Mul", `{"A": 2, "B": 3}`).expect(t, 0, `"C": 6`)

	// The file is older than version 1.
	run(t, "rules", "set", "arith", "-f", file).expect(t, 4, "at version 1 (by ada", "based on version 0")
	write(run(t, "rules", "get", "arith").out)
	run(t, "rules", "diff", "arith", "-f", file).expect(t, 0, "are the same")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(strings.Replace(string(text), "percent: 100", "percent: 10", 1))
	run(t, "rules", "diff", "arith", "-f", file).expect(t, 0, "-   percent: 100", "+   percent: 10")
	run(t, "rules", "set", "arith", "-f", file, "-m", "less").expect(t, 0, "at version 2")

	var list []route.Document
	run(t, "rules", "history", "arith", "--json").decode(t, &list)
	if len(list) != 2 || list[0].Version != 2 || list[1].Author != "ada" || list[1].Rules.Split[0].Percent != 100 {
		t.Errorf("history %+v", list)
	}
	run(t, "rules", "history", "arith").expect(t, 0, "VERSION", "all to 2.0", "ada")
	run(t, "rules", "rollback", "arith", "1").expect(t, 0, "at version 3")
	run(t, "rules", "rollback", "arith", "9").expect(t, 1, "there is no version 9")
	run(t, "rules", "diff", "arith", "--version", "1").expect(t, 0, "are the same")
	run(t, "rules", "diff", "arith", "--version", "1", "--to", "2").expect(t, 0, "percent: 10")
	run(t, "rules", "get", "arith", "--version", "2").expect(t, 0, "percent: 10")
	run(t, "rules", "get", "arith", "--registry", "etcd://"+unused(t)).expect(t, 1, "no registry answers")

	write(`{"rules":{"conditions":[{"to":{"group":"nobody"},"strict":true}]}}`)
	run(t, "rules", "set", "arith", "-f", file, "--base", "3").expect(t, 0, "at version 4")
	run(t, "explain", "arith", "Arith.Mul").expect(t, 3, "conditions[0]: leaves 0", "none: ")
}

func TestRulesDryRunAgainstCalls(t *testing.T) {
	url, file, one := twoVersions(t)
	rec := route.NewRecorder()
	rules := route.RuleSet{Conditions: []route.ConditionRule{{To: route.Select{ID: route.Patterns{"arith-1"}}}}}
	c, err := anser.Dial(url+"/arith", anser.NoSnapshot(), route.Static(rules, route.Record(rec), route.Of(file, "arith")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(time.Minute); len(rec.Recent("arith")) < 3; {
		if _, err := anser.Call[arith.Reply](context.Background(), c, "Arith.Mul", &arith.Args{A: 1, B: 2}); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("no calls are sampled")
		}
	}
	debug := serveDebug(t, rec, c)
	run := func(text string) result {
		t.Helper()
		return runWith(t, text, "rules", "dry-run", "arith", "-f", "-", "--from", debug)
	}
	run(canaryRules).expect(t, 0, "would have gone elsewhere", "Arith.Mul", "arith-1  arith-2")
	run(`rules: {conditions: [{when: {metadata: {user: "u*"}}, to: {id: arith-2}}]}`).expect(t, 0,
		"0 would have gone elsewhere", "not recorded, which counts as missing: user")
	run(`rules: {mocks: [{reply: {C: 1}}]}`).expect(t, 0, "would have been mocked")
	runWith(t, canaryRules, "rules", "dry-run", "arith", "-f", "-", "--from", one).expect(t, 1+3, "must serve a route.Recorder")

	// The same process explains.
	var x anser.Explanation
	runWith(t, "", "explain", "arith", "Arith.Mul", "--from", debug, "--json").decode(t, &x)
	if x.Pick != "arith-1" || len(x.Instances) != 2 || x.Instances[1].Excluded != "conditions[0]" {
		t.Errorf("%+v", x)
	}
	runWith(t, "", "explain", "other", "Arith.Mul", "--from", debug).expect(t, 6, `no client for the service "other"`)
}

// serveDebug serves the calls of a process.
func serveDebug(t *testing.T, rec *route.Recorder, c *anser.Client) string {
	t.Helper()
	s := anser.NewServer(anser.NoSignals())
	if err := rec.Serve(s); err != nil {
		t.Fatal(err)
	}
	if err := route.ServeExplain(s, map[string]*anser.Client{"arith": c}); err != nil {
		t.Fatal(err)
	}
	return listen(t, s)
}

// explain asks a client that has seen failures, and shows its state.
func TestExplainTellsOfHealth(t *testing.T) {
	good, sick := serve(t), anser.NewServer(anser.NoSignals())
	anser.Handle(sick, "Arith.Mul", func(context.Context, *arith.Args) (*arith.Reply, error) {
		return nil, anser.Refuse(anser.Unavailable, "not now")
	})
	url, _ := fileRegistry(t,
		registry.Instance{Service: "arith", ID: "good", Address: good},
		registry.Instance{Service: "arith", ID: "sick", Address: listen(t, sick)},
		registry.Instance{Service: "arith", ID: "tired", Address: "127.0.0.1:1", State: registry.Disabled})
	c, err := anser.Dial(url+"/arith", anser.NoSnapshot(), anser.Balancer(balance.RoundRobin()), anser.OutlierDetection{Time: time.Minute, MaxTime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(time.Minute); c.Status().Health[anser.InstanceEjected] == 0; {
		if _, err := anser.Call[arith.Reply](t.Context(), c, "Arith.Mul", &arith.Args{A: 1, B: 2}); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("no instance is ejected")
		}
	}
	debug := serveDebug(t, route.NewRecorder(), c)
	run(t, "explain", "arith", "Arith.Mul", "--from", debug).expect(t, 0, "pick      good", "ejected\n", "state\n",
		"sick: ejected ", ", as it refused ", " calls in a row: a call tries it in ", "tired: it says that it is disabled")
	var x anser.Explanation
	run(t, "explain", "arith", "Arith.Mul", "--from", debug, "--json").decode(t, &x)
	if len(x.Instances) != 3 || x.Instances[0].Cause != "" || x.Instances[2].Cause != anser.ExcludedByState {
		t.Fatalf("%+v", x.Instances)
	}
	if in := x.Instances[1]; in.Cause != anser.ExcludedEjected || in.Since.After(time.Now()) || in.Until.Sub(in.Since).Round(time.Second) != time.Minute {
		t.Errorf("%+v", in)
	}
}

// An unknown name is probably mistyped.
func TestRulesOfAnUnknownService(t *testing.T) {
	twoVersions(t)
	set := func(args ...string) result {
		t.Helper()
		return runWith(t, canaryRules, append([]string{"rules", "set", "-f", "-"}, args...)...)
	}
	set("airth").expect(t, 2, `the service "airth" has no instance in the registry, and no rules: did you mean arith?`, "--create")
	set("orders").expect(t, 2, "there are arith", "--create")
	run(t, "rules", "history", "airth").expect(t, 0, "airth has no rules")
	run(t, "rules", "get", "orders").expect(t, 2, `"orders" has no instance in the registry, and no rules`)
	set("orders", "--create").expect(t, 0, "The rules of orders are at version 1.")
	run(t, "rules", "get", "orders").expect(t, 0, "percent: 100")
	set("orders", "--base", "1").expect(t, 0, "at version 2")

	r := run(t, "rules", "get", "arith")
	if r.code != 0 || r.out != "rules: {}\n" || r.err != "arith has no rules.\n" {
		t.Errorf("%+v", r)
	}
}

func TestRulesDelete(t *testing.T) {
	twoVersions(t)
	run(t, "rules", "delete", "arith").expect(t, 1, "arith has no rules: nothing was changed")
	runWith(t, canaryRules, "rules", "set", "arith", "-f", "-").expect(t, 0, "at version 1")
	run(t, "rules", "delete", "arith", "--base", "7").expect(t, 4, "at version 1", "based on version 7")
	run(t, "rules", "delete", "arith", "-m", "over").expect(t, 0, "version 2 has none", `"anser rules rollback arith 1" brings them back`)
	run(t, "rules", "get", "arith").expect(t, 0, "arith has no rules.", "version: 2", "comment: over", "rules: {}")
	run(t, "rules", "delete", "arith").expect(t, 1, "arith has no rules")
	run(t, "rules", "rollback", "arith", "1").expect(t, 0, "at version 3")
	var d route.Document
	run(t, "rules", "delete", "arith", "--json").decode(t, &d)
	if d.Version != 4 || len(d.Rules.Split) != 0 {
		t.Errorf("%+v", d)
	}
}

// Calls of the commands follow the rules of the service.
func TestCommandsFollowRules(t *testing.T) {
	twoVersions(t)
	runWith(t, `
rules:
  mocks:
  - {when: {methods: Arith.Mul, caller: {zone: north}}, reply: {C: 1}}
  - {when: {methods: Arith.Mul}, reply: {C: 2}}
  faults:
  - {when: {methods: Arith.Add}, percent: 100, until: "2100-01-01T00:00:00Z", error: {code: not found, message: by a fault}}
`, "rules", "set", "arith", "-f", "-").expect(t, 0, "at version 1")
	call := func(args ...string) result {
		t.Helper()
		return run(t, append([]string{"call", "arith", "Arith.Mul", `{"A": 7, "B": 8}`}, args...)...)
	}
	call().expect(t, 0, `"C": 2`)
	call("--caller-zone", "north").expect(t, 0, `"C": 1`)
	call("--no-rules").expect(t, 0, `"C": 56`)
	run(t, "bench", "arith", "Arith.Add", "--timeout", "1m").expect(t, 3, "by a fault")
	run(t, "bench", "arith", "Arith.Add", "--timeout", "1m", "--no-rules", "--callers", "1", "--seconds", "0.01", "--warmup", "0").expect(t, 0, "Arith.Add")
}
