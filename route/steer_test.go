package route_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// fleet starts three instances: a and b of version 1 in two zones, c of version 2 with the tag
// env=gray.
func fleet(t testing.TB) *registry.Memory {
	m := registry.NewMemory()
	start(t, m, registry.Instance{ID: "a", Version: "1.0", Zone: "north", Group: "blue"})
	start(t, m, registry.Instance{ID: "b", Version: "1.1", Zone: "south"})
	start(t, m, registry.Instance{ID: "c", Version: "2.0", Zone: "south", Tags: map[string]string{"env": "gray"}})
	eventually(t, "three instances", func() bool {
		list, err := registry.List(t.Context(), m, "test")
		return err == nil && len(list) == 3
	})
	return m
}

var turns = anser.Balancer(balance.RoundRobin())

func TestRulesSteer(t *testing.T) {
	m := fleet(t)
	caller := route.Caller{Service: "shop", Group: "blue", Zone: "south", Version: "1.0", Tags: map[string]string{"team": "red"}}
	c := dial(t, m, turns, route.Rules(route.From(caller)))
	for name, test := range map[string]struct {
		rules string
		md    anser.Metadata
		want  string
	}{
		"nothing":                 {rules: `{}`, want: "a b c"},
		"group":                   {rules: `{"groups":[{"caller":{"group":"blue"},"group":"blue"}]}`, want: "a"},
		"version":                 {rules: `{"groups":[{"caller":{"group":"red"},"version":"2.*"},{"version":"1.*"}]}`, want: "a b"},
		"group that is not there": {rules: `{"groups":[{"group":"green"}]}`, want: "a b c"},
		"own version":             {rules: `{"groups":[{"version":"$version"}]}`, want: "a"},

		"no tag":                {rules: `{"tags":[{"tag":"env","metadata":"flow-env"}]}`, want: "a b"},
		"tag":                   {rules: `{"tags":[{"tag":"env","metadata":"flow-env"}]}`, md: anser.Metadata{"flow-env": "gray"}, want: "c"},
		"tag that nobody has":   {rules: `{"tags":[{"tag":"env","metadata":"flow-env"}]}`, md: anser.Metadata{"flow-env": "pink"}, want: "a b"},
		"tag of the caller":     {rules: `{"tags":[{"tag":"team"}]}`, want: "a b c"},
		"condition by metadata": {rules: `{"conditions":[{"when":{"metadata":{"user":["u1","x*"]}},"to":{"id":"b"}}]}`, md: anser.Metadata{"user": "xy"}, want: "b"},
		"other metadata":        {rules: `{"conditions":[{"when":{"metadata":{"user":["u1","x*"]}},"to":{"id":"b"}}]}`, md: anser.Metadata{"user": "u2"}, want: "a b c"},
		"by missing metadata":   {rules: `{"conditions":[{"when":{"metadata":{"user":""}},"to":{"id":"b"}}]}`, want: "b"},
		"condition by method":   {rules: `{"conditions":[{"when":{"methods":"Test.Oth*"},"to":{"id":"b"}}]}`, want: "a b c"},
		"not a method":          {rules: `{"conditions":[{"when":{"methods":"!Test.Other"},"to":{"id":"b"}}]}`, want: "b"},
		"by caller":             {rules: `{"conditions":[{"when":{"caller":{"service":"shop","tags":{"team":"!blue"}}},"to":{"zone":"$zone"}}]}`, want: "b c"},
		"two conditions":        {rules: `{"conditions":[{"to":{"zone":"south"}},{"to":{"version":"1.*"}}]}`, want: "b"},
		"one of two passed over": {
			rules: `{"conditions":[{"to":{"zone":"south"}},{"to":{"group":"blue"}}]}`, want: "b c",
		},
		"all of the calls": {rules: `{"split":[{"percent":100,"to":{"version":"2.*"}}]}`, want: "c"},
		"none":             {rules: `{"split":[{"percent":0,"to":{"version":"2.*"}}]}`, want: "a b"},
		"state":            {rules: `{"instances":[{"match":{"id":"a"},"state":"draining"},{"match":{"version":"2.*"},"state":"disabled"}]}`, want: "b"},
		"tag by a rule":    {rules: `{"instances":[{"match":{"id":"b"},"tags":{"env":"gray"}}],"conditions":[{"to":{"tags":{"env":"gray"}}}]}`, want: "b c"},
		"no tag by a rule": {rules: `{"instances":[{"match":{"id":"c"},"tags":{"env":""}},{"match":{"id":"a"},"tags":{"env":"gray"}}],"conditions":[{"to":{"tags":{"env":"gray"}}}]}`, want: "a"},
		"share over":       {rules: `{"split":[{"percent":100,"until":"2020-01-02T15:04:05Z","to":{"version":"2.*"}}]}`, want: "a b"},
		"share not over":   {rules: `{"split":[{"percent":100,"until":"2200-01-02T15:04:05Z","to":{"version":"2.*"}}]}`, want: "c"},
		"enabled again":    {rules: `{"instances":[{"match":{"id":["a","b"]},"state":"disabled"},{"match":{"id":"a"},"state":"up"}]}`, want: "a c"},
	} {
		t.Run(name, func(t *testing.T) {
			d := set(t, m, test.rules)
			eventually(t, "the rules", func() bool {
				st := c.Status().Rules
				return st != nil && st.Version == d.Version
			})
			only(t, count(t, c, 30, test.md), strings.Fields(test.want)...)
		})
	}
}

func TestStrictRulesFailCalls(t *testing.T) {
	m := fleet(t)
	c := dial(t, m, route.Rules())
	d := set(t, m, `{"conditions":[{"name":"only pink","when":{"methods":"Test.Who"},"to":{"group":"pink"},"strict":true}]}`)
	await(t, c, d.Version, 3)
	_, err := whoami.Call(t.Context(), c, new(anser.None), anser.WithFailMode(anser.Failfast))
	e, ok := errors.AsType[*anser.Error](err)
	if !ok || e.Code != anser.Unavailable || e.Outcome != anser.NotSent || !strings.Contains(e.Message, "conditions[0] only pink") {
		t.Errorf("got %v, want Unavailable, not sent, with the name of the rule", err)
	}
	if _, err := anser.Call[Name](t.Context(), c, "Test.Other", new(anser.None)); err != nil {
		t.Errorf("another method: %v", err)
	}
	// Futures, oneway calls and streams follow the rules, too.
	if _, err := whoami.Go(t.Context(), c, new(anser.None), anser.WithFailMode(anser.Failfast)).Wait(); anser.CodeOf(err) != anser.Unavailable {
		t.Errorf("a future got %v, want Unavailable", err)
	}
	if err := c.Send(t.Context(), "Test.Who", new(anser.None), anser.WithFailMode(anser.Failfast)); anser.CodeOf(err) != anser.Unavailable {
		t.Errorf("a oneway call got %v, want Unavailable", err)
	}
	if _, err := anser.Open[anser.None, Name](t.Context(), c, "Test.Who", anser.WithFailMode(anser.Failfast)); anser.CodeOf(err) != anser.Unavailable {
		t.Errorf("a stream got %v, want Unavailable", err)
	}
}

// A retried call continues within its deadline when its subset comes back, and stays in the subset
// when its instance is gone.
func TestRetriesStayInTheSubset(t *testing.T) {
	m := registry.NewMemory()
	first := start(t, m, registry.Instance{ID: "b1", Group: "blue"})
	start(t, m, registry.Instance{ID: "b2", Group: "blue"})
	start(t, m, registry.Instance{ID: "green", Group: "green"})
	d := set(t, m, `{"conditions":[{"to":{"group":"blue"},"strict":true}]}`)
	c := dial(t, m, turns, route.Rules())
	await(t, c, d.Version, 3)
	only(t, count(t, c, 20, nil), "b1", "b2")
	first.Close()
	only(t, count(t, c, 50, nil), "b2")
}

func TestSplitByKeyIsStable(t *testing.T) {
	m := fleet(t)
	d := set(t, m, `{"split":[{"percent":30,"by":"user","to":{"version":"2.*"}}]}`)
	c := dial(t, m, route.Rules())
	await(t, c, d.Version, 3)
	canary := 0
	for i := range 200 {
		md := anser.Metadata{"user": "user-" + strings.Repeat("x", i)}
		got := count(t, c, 3, md)
		if got["c"] != 0 && got["c"] != 3 {
			t.Fatalf("user %d was on both sides: %v", i, got)
		}
		canary += got["c"] / 3
	}
	if canary < 30 || canary > 90 {
		t.Errorf("%d of 200 users are in a share of 30 %%", canary)
	}
}

func TestWeightsOfTheRules(t *testing.T) {
	m := registry.NewMemory()
	start(t, m, registry.Instance{ID: "a"})
	start(t, m, registry.Instance{ID: "b"})
	d := set(t, m, `{"instances":[{"match":{"id":"a"},"weight":900}]}`)
	c := dial(t, m, anser.Balancer(balance.Weighted()), route.Rules())
	await(t, c, d.Version, 2)
	if got := count(t, c, 100, nil); got["a"] < 85 || got["a"] > 95 {
		t.Errorf("of 100 calls went %v, want 90 to a", got)
	}
}

func TestRulesThatCannotBeUsedChangeNothing(t *testing.T) {
	m := fleet(t)
	d := set(t, m, `{"conditions":[{"to":{"id":"a"}}]}`)
	c := dial(t, m, route.Rules())
	await(t, c, d.Version, 3)
	now, err := m.Load(t.Context(), "rules/test")
	must(t, err)
	for _, bad := range []string{"", "{", `{"rules":{"splits":[]}}`, `{"version":9,"rules":{"split":[{"percent":101,"to":{"id":"b"}}]}}`} {
		now.Data = []byte(bad)
		now.Revision, err = m.Save(t.Context(), now)
		must(t, err)
		eventually(t, "trouble", func() bool { return c.Status().Rules.Trouble != nil })
		only(t, count(t, c, 10, nil), "a")
	}
	now.Data = []byte(`{"version":10,"rules":{"conditions":[{"to":{"id":"b"}}]}}`)
	_, err = m.Save(t.Context(), now)
	must(t, err)
	await(t, c, 10, 3)
	if err := c.Status().Rules.Trouble; err != nil {
		t.Errorf("the trouble is over: %v", err)
	}
	only(t, count(t, c, 10, nil), "b")
}

// deaf is a registry whose documents are unavailable.
type deaf struct{ *registry.Memory }

func (deaf) Follow(ctx context.Context, _ string, _ func(registry.Document), trouble func(error)) error {
	trouble(errors.New("nobody answers"))
	<-ctx.Done()
	return ctx.Err()
}

func TestRulesOutlastTheRegistry(t *testing.T) {
	m := fleet(t)
	d := set(t, m, `{"conditions":[{"to":{"id":"c"}}]}`)
	dir := anser.SnapshotDir(t.TempDir())
	open := func(store registry.Store) *anser.Client {
		c, err := anser.Dial("mem://test", silent, scheme(m), dir, route.Rules(route.Of(store, "test")))
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	first := open(m)
	await(t, first, d.Version, 3)
	first.Close()
	second := open(deaf{m})
	only(t, count(t, second, 20, nil), "c")
	eventually(t, "trouble", func() bool { return second.Status().Rules.Trouble != nil })
	if st := second.Status().Rules; !st.Saved || st.Version != d.Version {
		t.Errorf("status %+v, want the saved rules of version %d", st, d.Version)
	}
}

// nagging is a registry that says again and again that its documents are unavailable.
type nagging struct {
	*registry.Memory
	said chan struct{} // closed when it has said so
}

func (n nagging) Follow(ctx context.Context, _ string, _ func(registry.Document), trouble func(error)) error {
	for range 3 {
		trouble(errors.New("nobody answers"))
	}
	close(n.said)
	<-ctx.Done()
	return ctx.Err()
}

// Saved rules that cannot be used are a line in the log, and not one for each attempt.
func TestSpoiltRulesAreLoggedOnce(t *testing.T) {
	m := fleet(t)
	d := set(t, m, `{"conditions":[{"to":{"id":"c"}}]}`)
	dir, log := t.TempDir(), new(testlog.Buffer)
	open := func(store registry.Store) *anser.Client {
		c, err := anser.Dial("mem://test", anser.Logger(log.Logger()), scheme(m), anser.SnapshotDir(dir), route.Rules(route.Of(store, "test")))
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	first := open(m)
	await(t, first, d.Version, 3)
	first.Close()
	spoilt := 0
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte("conditions")) {
			return err
		}
		spoilt++
		return os.WriteFile(path, bytes.ReplaceAll(data, []byte("conditions"), []byte("conditiens")), 0o600)
	}))
	if spoilt != 1 {
		t.Fatalf("%d files have the rules, want 1", spoilt)
	}
	said := make(chan struct{})
	open(nagging{m, said})
	<-said
	if n := strings.Count(log.String(), "the saved rules cannot be used"); n != 1 {
		t.Errorf("%d lines say that the saved rules cannot be used, want 1:\n%s", n, log)
	}
}

// A client whose rules arrive late makes no call before them.
func TestTheFirstCallsKeepToTheRules(t *testing.T) {
	m := fleet(t)
	set(t, m, `{"conditions":[{"to":{"id":"b"}}]}`)
	for range 20 {
		c := dial(t, m, route.Rules())
		only(t, count(t, c, 3, nil), "b")
		c.Close()
	}
}

func TestStatic(t *testing.T) {
	m := fleet(t)
	rules := route.RuleSet{Conditions: []route.ConditionRule{{To: route.Select{ID: route.Patterns{"b"}}}}}
	list, err := registry.List(t.Context(), m, "test")
	must(t, err)
	c, err := anser.Dial(list[0].Address+","+list[1].Address, silent, route.Static(route.RuleSet{
		Conditions: []route.ConditionRule{{To: route.Select{Address: route.Patterns{list[1].Address}}, Strict: true}},
	}))
	must(t, err)
	defer c.Close()
	only(t, count(t, c, 20, nil), list[1].ID)
	only(t, count(t, dial(t, m, route.Static(rules)), 20, nil), "b")

	for say, opts := range map[string][]anser.DialOption{
		"rules.conditions[0].to: selects nothing": {route.Static(route.RuleSet{Conditions: []route.ConditionRule{{}}})},
		"no registry that keeps documents":        {route.Rules()},
		"a client has one router":                 {route.Static(rules), route.Static(rules)},
	} {
		if _, err := anser.Dial("127.0.0.1:1", opts...); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("Dial = %v, want %s", err, say)
		}
	}
}

func TestExplain(t *testing.T) {
	m := fleet(t)
	d := set(t, m, `{
		"conditions":[{"name":"south","to":{"zone":"south"}}],
		"instances":[{"match":{"id":"c"},"state":"disabled"}],
		"methods":[{"timeout":"2s"}]}`)
	c := dial(t, m, route.Rules())
	await(t, c, d.Version, 2)
	x, err := c.Explain(t.Context(), "Test.Who")
	must(t, err)
	if x.Pick != "b" || len(x.Instances) != 3 || len(x.Filters) != 1 || x.Filters[0].Left != 1 || len(x.Policies) != 1 {
		t.Fatalf("%+v", x)
	}
	for i, want := range []string{"conditions[0] south", "", "the rules say that it is disabled"} {
		if x.Instances[i].Excluded != want {
			t.Errorf("%+v, want excluded by %q", x.Instances[i], want)
		}
	}
	d = set(t, m, `{"conditions":[{"to":{"zone":"west"},"strict":true}]}`)
	await(t, c, d.Version, 3)
	if x, err = c.Explain(t.Context(), "Test.Who"); err != nil || x.Pick != "" || x.Error == "" {
		t.Errorf("%+v, %v: want no pick and why", x, err)
	}
}

func TestPolicies(t *testing.T) {
	m := fleet(t)
	// The client's own timeout is longer than any test: a call that ends earlier was ended by the
	// rules.
	c := dial(t, m, route.Rules(), anser.Timeout(time.Hour))
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	past := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	use := func(rules string) {
		t.Helper()
		await(t, c, set(t, m, rules).Version, 3)
	}
	call := func(method string) (*Name, error) {
		return anser.Call[Name](t.Context(), c, method, new(anser.None))
	}
	wants := func(method string, code anser.Code, outcome anser.Outcome, text string) {
		t.Helper()
		_, err := call(method)
		e, ok := errors.AsType[*anser.Error](err)
		if !ok || e.Code != code || e.Outcome != outcome || !strings.Contains(err.Error(), text) || e.Method != method {
			t.Errorf("%s = %v, want %v, %v, %q", method, err, code, outcome, text)
		}
	}

	use(`{"mocks":[{"when":{"methods":"Test.Who"},"reply":{"Name":"mock"}},
		{"when":{"methods":"Test.Other"},"error":{"code":"NOT_FOUND","message":"not today"}}]}`)
	if r, err := call("Test.Who"); err != nil || r.Name != "mock" {
		t.Errorf("mock: %v, %v", r, err)
	}
	wants("Test.Other", anser.NotFound, anser.NotSent, "not today")

	use(`{"mocks":[{"failing":true,"reply":{"Name":"degraded"}}],"methods":[{"when":{"methods":"Test.Slow"},"timeout":"20ms"}]}`)
	if r, err := call("Test.Who"); err != nil || r.Name == "degraded" {
		t.Errorf("a call that worked: %v, %v", r, err)
	}
	if r, err := call("Test.Slow"); err != nil || r.Name != "degraded" {
		t.Errorf("degrade: %v, %v", r, err)
	}
	wants("Test.Fail", anser.NotFound, anser.Executed, "no such thing")

	use(`{"methods":[{"when":{"methods":"Test.Slow"},"timeout":"20ms"}]}`)
	if _, err := call("Test.Slow"); !errors.Is(err, anser.DeadlineExceeded) {
		t.Errorf("timeout of the rules: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if _, err := anser.Call[Name](ctx, c, "Test.Slow", new(anser.None)); !errors.Is(err, anser.DeadlineExceeded) {
		t.Errorf("with a deadline of its own: %v", err)
	}

	use(`{"faults":[{"percent":100,"until":"` + soon + `","when":{"methods":"Test.Who"},"abort":true},
		{"percent":100,"until":"` + soon + `","when":{"methods":"Test.Other"},"error":{"code":"internal"}},
		{"percent":100,"until":"` + past + `","when":{"methods":"Test.Fail"},"abort":true}]}`)
	wants("Test.Who", anser.Unavailable, anser.OutcomeUnknown, "by a fault of the rules")
	wants("Test.Other", anser.Internal, anser.NotSent, "fault")
	wants("Test.Fail", anser.NotFound, anser.Executed, "no such thing")

	use(`{"faults":[{"percent":100,"until":"` + soon + `","delay":"60ms"}]}`)
	began := time.Now()
	if _, err := call("Test.Who"); err != nil || time.Since(began) < 60*time.Millisecond {
		t.Errorf("delay: %v after %v", err, time.Since(began))
	}

	use(`{"methods":[{"name":"few","when":{"methods":"Test.Who"},"rate":{"per_second":0.001,"burst":2}}]}`)
	for range 2 {
		if _, err := call("Test.Who"); err != nil {
			t.Errorf("within the burst: %v", err)
		}
	}
	wants("Test.Who", anser.ResourceExhausted, anser.NotSent, "methods[0] few")
	if _, err := call("Test.Other"); err != nil {
		t.Errorf("another method: %v", err)
	}

	use(`{"methods":[{"when":{"methods":"Test.Slow"},"concurrency":1}]}`)
	busy, stop := context.WithCancel(t.Context())
	over := make(chan error, 5)
	for range 5 {
		go func() {
			_, err := anser.Call[Name](busy, c, "Test.Slow", new(anser.None))
			over <- err
		}()
	}
	for range 4 {
		if err := <-over; !errors.Is(err, anser.ResourceExhausted) {
			t.Errorf("over the limit: %v", err)
		}
	}
	stop()
	if err := <-over; !errors.Is(err, anser.Canceled) {
		t.Errorf("within the limit: %v", err)
	}

	use(`{"methods":[{"mode":"failfast","attempts":1}]}`)
	if _, err := call("Test.Who"); err != nil {
		t.Error(err)
	}
}

func TestAdjust(t *testing.T) {
	weight := 7
	rules := route.RuleSet{Instances: []route.InstanceRule{{Match: route.Select{ID: route.Patterns{"a"}}, Weight: &weight, State: "draining", Tags: map[string]string{"env": "gray", "old": ""}}}}
	in := registry.Instance{Service: "test", ID: "a", Address: "h:1", Tags: map[string]string{"old": "x"}}
	if got := rules.Adjust(in); got.Weight != 7 || got.State != registry.Draining || got.Tags["env"] != "gray" || got.Tags["old"] != "" || in.Tags["old"] != "x" {
		t.Errorf("%+v from %+v", got, in)
	}
	if got := new(route.RuleSet).Adjust(in); !got.Equal(in) {
		t.Errorf("without rules %+v", got)
	}
}
