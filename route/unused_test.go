package route_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

func TestUnused(t *testing.T) {
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	d, err := route.Parse([]byte(fmt.Sprintf(`{"rules": {
  "conditions": [
    {"name": "north", "when": {"methods": "Arith.*"}, "to": {"zone": "north"}},
    {"name": "nowhere", "when": {"methods": "Arith.Pow"}, "to": {"zone": "west"}}],
  "tags": [{"name": "team", "tag": "team"}, {"name": "build", "tag": "build"}],
  "methods": [
    {"when": {"methods": ["Arith.Mul", "Arith.Pow"]}, "attempts": 1},
    {"name": "old", "when": {"methods": "Arith.Root"}, "attempts": 1}],
  "mocks": [
    {"name": "fixed", "when": {"methods": "Arith.Mul"}, "reply": {}},
    {"name": "degraded", "when": {"methods": "Arith.Mul"}, "failing": true, "reply": {}}],
  "faults": [
    {"name": "over", "percent": 1, "abort": true, "until": %q},
    {"name": "now", "percent": 1, "abort": true, "until": %q}]
}}`, past.UTC().Format(time.RFC3339), future.UTC().Format(time.RFC3339))))
	if err != nil {
		t.Fatal(err)
	}
	instances := []registry.Instance{{Service: "arith", Address: "h:1", Zone: "north", Tags: map[string]string{"team": "red"}}}
	names := func(list []route.Unused) (out []string) {
		for _, u := range list {
			if u.Why == "" {
				t.Errorf("%s has no reason", u.Rule)
			}
			out = append(out, u.Rule)
		}
		return out
	}
	got := names(d.Rules.Unused(instances, []string{"Arith.Mul"}))
	if want := []string{"conditions[1] nowhere", "tags[1] build", "conditions[1] nowhere", "methods[1] old", "faults[0] over"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = names(d.Rules.Unused(instances, nil))
	if want := []string{"conditions[1] nowhere", "tags[1] build", "faults[0] over"}; !slices.Equal(got, want) {
		t.Errorf("without methods %q, want %q", got, want)
	}
	if got, want := d.Rules.Interfering(), []string{"mocks[0] fixed", "faults[1] now"}; !slices.Equal(got, want) {
		t.Errorf("%q interfere, want %q", got, want)
	}
}
