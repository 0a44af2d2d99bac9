package route_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// whole is a document with every key.
const whole = `{"version":3,"author":"ada","time":"2026-01-02T15:04:05Z","comment":"c","rules":{
"groups":[{"name":"n","caller":{"service":"s","group":"g","version":"v","zone":"z","tags":{"a":"b"}},"group":"g","version":["v","!w"],"strict":true}],
"tags":[{"name":"n","tag":"env","metadata":"flow-env","strict":true}],
"conditions":[{"name":"n","when":{"methods":"A.*","metadata":{"user":"u"},"caller":{}},"to":{"id":"i","address":"a","group":"g","version":"v","zone":"z","tags":{"a":"b"}},"strict":true}],
"split":[{"name":"n","when":{},"percent":12.25,"by":"user","to":{"id":"i"},"strict":true}],
"instances":[{"name":"n","match":{"id":"i"},"weight":7,"state":"draining"}],
"methods":[{"name":"n","when":{},"timeout":"1.5s","attempts":2,"mode":"failfast","rate":{"per_second":0.5,"burst":3},"concurrency":4}],
"mocks":[{"name":"n","when":{},"failing":true,"reply":{"a":[1]}},{"error":{"code":"not_found","message":"m"}}],
"faults":[{"name":"n","when":{},"percent":0.01,"delay":"1ms","error":{"code":"internal"},"until":"2030-01-01T00:00:00Z"},{"percent":1,"abort":true,"until":"2030-01-01T00:00:00+01:00"}]}}`

func TestParseKeepsEverything(t *testing.T) {
	d, err := route.Parse([]byte(whole))
	must(t, err)
	text, err := json.Marshal(d)
	must(t, err)
	again, err := route.Parse(text)
	must(t, err)
	second, err := json.Marshal(again)
	must(t, err)
	if string(text) != string(second) {
		t.Errorf("written and read again\n%s\nis\n%s", text, second)
	}
	var a, b any
	must(t, json.Unmarshal([]byte(whole), &a))
	must(t, json.Unmarshal(text, &b))
	lost := 0
	compare(t, "", a, b, &lost)
	if lost > 0 {
		t.Errorf("%d keys were lost", lost)
	}
}

// compare reports keys of a that are missing in b, except empty objects.
func compare(t *testing.T, path string, a, b any, lost *int) {
	switch a := a.(type) {
	case map[string]any:
		m, _ := b.(map[string]any)
		for k, v := range a {
			if _, ok := m[k]; !ok && fmt.Sprint(v) != "map[]" {
				t.Errorf("%s.%s is lost", path, k)
				*lost++
				continue
			}
			compare(t, path+"."+k, v, m[k], lost)
		}
	case []any:
		l, _ := b.([]any)
		for i, v := range a {
			if i < len(l) {
				compare(t, fmt.Sprintf("%s[%d]", path, i), v, l[i], lost)
			}
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for rules, say := range map[string]string{
		`{"split":[{"percnt":1,"to":{"id":"a"}}]}`: "rules.split[0].percnt: unknown key, did you mean percent?",
		`{"splits":[]}`: "rules.splits: unknown key, did you mean split?",
		`{"xyzzy":[]}`:  "rules.xyzzy: unknown key: the keys are conditions, faults",
		`{"conditions":[{"When":{},"to":{"id":"a"}}]}`:                              "rules.conditions[0].When: unknown key, did you mean when?",
		`{"conditions":[{"when":{"metdata":{}},"to":{"id":"a"}}]}`:                  "rules.conditions[0].when.metdata: unknown key, did you mean metadata?",
		`{"conditions":[{"to":{}}]}`:                                                "rules.conditions[0].to: selects nothing in particular",
		`{"conditions":[{}]}`:                                                       "rules.conditions[0].to: is missing: which instances",
		`{"conditions":{}}`:                                                         "rules.conditions: want a list, have an object",
		`{"conditions":[{"to":{"id":7}}]}`:                                          "rules.conditions[0].to.id: want a text or a list of texts, have the number 7",
		`{"conditions":[{"to":{"id":["a",null]}}]}`:                                 "rules.conditions[0].to.id[1]: want a text, have null",
		`{"conditions":[{"to":{"tags":{"a":1}}}]}`:                                  "rules.conditions[0].to.tags.a: want a text",
		`{"conditions":[{"when":{"metadata":{"User":"a"}},"to":{"id":"a"}}]}`:       `rules.conditions[0].when.metadata.User: keys of metadata are in lower case: write "user"`,
		`{"split":[{"percent":101,"to":{"id":"a"}}]}`:                               "rules.split[0].percent: 101 is not a share",
		`{"split":[{"percent":-1,"to":{"id":"a"}}]}`:                                "rules.split[0].percent: -1 is not a share",
		`{"split":[{"percent":0.001,"to":{"id":"a"}}]}`:                             "rules.split[0].percent: 0.001 is not a share",
		`{"split":[{"percent":"10","to":{"id":"a"}}]}`:                              `rules.split[0].percent: want a number, have the text "10"`,
		`{"split":[{"percent":1e999,"to":{"id":"a"}}]}`:                             "rules.split[0].percent: 1e999 is out of range",
		`{"split":[{"percent":60,"to":{"id":"a"}},{"percent":50,"to":{"id":"b"}}]}`: "rules.split[1].percent: brings the shares of the same calls to 110",
		`{"groups":[{}]}`:                                                           "rules.groups[0]: names neither group nor version",
		`{"tags":[{"tag":""}]}`:                                                     "rules.tags[0].tag: is empty",
		`{"tags":[{"tag":"a"},{"tag":"b"},{"tag":"c"},{"tag":"d"},{"tag":"e"}]}`:    "rules.tags: has 5 rules: at most 4",
		`{"instances":[{"match":{"id":"a"}}]}`:                                      "rules.instances[0]: sets neither weight nor state",
		`{"instances":[{"match":{"id":"a"},"weight":0}]}`:                           "rules.instances[0].weight: 0 is not a weight",
		`{"instances":[{"match":{"id":"a"},"weight":1.5}]}`:                         "rules.instances[0].weight: 1.5 is out of range, or not whole",
		`{"instances":[{"match":{"id":"a"},"state":"off"}]}`:                        `rules.instances[0].state: "off" is not a state`,
		`{"methods":[{}]}`:                                                          "rules.methods[0]: sets nothing",
		`{"methods":[{"timeout":"fast"}]}`:                                          `rules.methods[0].timeout: "fast" is not a duration`,
		`{"methods":[{"timeout":5}]}`:                                               "rules.methods[0].timeout: want a text, have the number 5",
		`{"methods":[{"timeout":"-1s"}]}`:                                           "rules.methods[0].timeout: -1s is negative",
		`{"methods":[{"attempts":6}]}`:                                              "rules.methods[0].attempts: 6: use 1 to 5",
		`{"methods":[{"mode":"failovr"}]}`:                                          `rules.methods[0].mode: "failovr" is not a fail mode, did you mean failover?`,
		`{"methods":[{"rate":{"per_second":0}}]}`:                                   "rules.methods[0].rate: want per_second above 0",
		`{"mocks":[{}]}`:                                                            "rules.mocks[0]: want one of reply and error",
		`{"mocks":[{"error":{"code":"unavailabel"}}]}`:                              `rules.mocks[0].error.code: "unavailabel" is not a code, did you mean unavailable?`,
		`{"faults":[{"percent":1,"abort":true}]}`:                                   "rules.faults[0].until: is missing",
		`{"faults":[{"percent":1,"abort":true,"until":"tomorrow"}]}`:                `rules.faults[0].until: "tomorrow" is no point in time`,
		`{"faults":[{"percent":1,"until":"2030-01-01T00:00:00Z"}]}`:                 "rules.faults[0]: does nothing",
		`{"faults":[{"percent":0,"abort":true,"until":"2030-01-01T00:00:00Z"}]}`:    "rules.faults[0].percent: 0 is not a share",
		`{"faults":[{"percent":1,"delay":"2m","until":"2030-01-01T00:00:00Z"}]}`:    "rules.faults[0].delay: 2m0s: use at most 1m0s",
		`null`:          "rules: want an object, have null",
		`{"groups":[`:   "is not JSON",
		`{"a":1,"a":2}`: "a",
	} {
		_, err := route.Parse([]byte(`{"rules":` + rules + `}`))
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s\n got %v\nwant %s", rules, err, say)
		}
	}
	if _, err := route.Parse([]byte(`{}`)); err == nil || !strings.Contains(err.Error(), "rules: is missing") {
		t.Errorf("without rules: %v", err)
	}
	if _, err := route.Parse(make([]byte, registry.MaxDocument+1)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too large: %v", err)
	}
	if _, err := route.Parse([]byte(`{"rules":` + strings.Repeat("[", 10000))); err == nil {
		t.Error("very deep: no error")
	}
	many := `{"rules":{"groups":[` + strings.TrimSuffix(strings.Repeat(`{},`, 500), ",") + `]}}`
	if _, err := route.Parse([]byte(many)); err == nil || strings.Count(err.Error(), "\n") > 30 {
		t.Errorf("hundreds of mistakes make %d lines", strings.Count(fmt.Sprint(err), "\n"))
	}
}

// FuzzParse checks that every accepted document can be encoded, decoded again, and applied.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"rules":{}}`))
	f.Add([]byte(`{"rules":{"split":[{"percnt":1}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := route.Parse(data)
		if err != nil {
			return
		}
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatalf("accepted, but cannot be written: %v", err)
		}
		if _, err := route.Parse(text); err != nil {
			t.Fatalf("accepted %s, refused %s: %v", data, text, err)
		}
		in := []registry.Instance{{Service: "s", Address: "h:1", Version: "1"}, {Service: "s", Address: "h:2", Group: "g"}}
		route.DryRun(&d.Rules, []route.Sample{{Method: "A.B", Address: "h:1", Metadata: map[string]string{"user": "u"}}}, in)
	})
}

// Of many calls without a key, a share of p percent receives p percent; of many users, each stays
// in its share when the share grows.
func TestSharesAreWhatTheySay(t *testing.T) {
	if testing.Short() {
		t.Skip("draws for seconds")
	}
	instances := []registry.Instance{
		{Service: "s", ID: "old", Address: "h:1"}, {Service: "s", ID: "a", Address: "h:2"}, {Service: "s", ID: "b", Address: "h:3"},
	}
	rapid.Check(t, func(rt *rapid.T) {
		a := float64(rapid.IntRange(0, 5000).Draw(rt, "a")) / 100
		b := float64(rapid.IntRange(0, 5000).Draw(rt, "b")) / 100
		more := float64(rapid.IntRange(0, 5000).Draw(rt, "more")) / 100
		by := rapid.SampledFrom([]string{"", "user"}).Draw(rt, "by")
		rules := func(a float64) *route.RuleSet {
			r := &route.RuleSet{Split: []route.SplitRule{
				{Percent: a, By: by, To: route.Select{ID: route.Patterns{"a"}}},
				{When: route.Match{Methods: route.Patterns{"*"}}, Percent: b, By: by, To: route.Select{ID: route.Patterns{"b"}}},
			}}
			if err := r.Validate(); err != nil {
				rt.Fatal(err)
			}
			return r
		}
		const n = 4000
		sides := route.Sides(rules(a), by, n, instances)
		count := map[string]int{}
		for _, s := range sides {
			count[s]++
		}
		for id, percent := range map[string]float64{"a": a, "b": b, "old": 100 - a - b} {
			want := percent * n / 100
			// Six standard deviations: once in a billion.
			if off := float64(count[id]) - want; off*off > 36*(n*percent/100*(1-percent/100)+1) {
				rt.Fatalf("%s has %d of %d calls, want %v", id, count[id], n, want)
			}
		}
		if by != "" {
			for i, s := range route.Sides(rules(a+more), by, n, instances) {
				if sides[i] == "a" && s != "a" {
					rt.Fatalf("call %d left the share when it grew from %v to %v", i, a, a+more)
				}
			}
		}
	})
}

func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		patterns, text string
		want           bool
	}{
		{"", "", true},
		{"a", "a", true},
		{"a", "b", false},
		{"a*", "a", true},
		{"a*c", "abbc", true},
		{"a*c", "abcb", false},
		{"*b*b", "abab", true},
		{"*", "", true},
		{"!a", "b", true},
		{"!a", "a", false},
		{"!", "", false},
		{"!", "x", true},
		{"a* !ab", "ab", false},
		{"a* !ab", "ac", true},
		{"x y", "y", true},
		{"*a*a*a*a*a*b", strings.Repeat("a", 5000), false},
	} {
		if got := route.Patterns(strings.Fields(test.patterns)).Match(test.text); got != test.want {
			t.Errorf("%q matches %.20q: %v, want %v", test.patterns, test.text, got, test.want)
		}
	}
}
