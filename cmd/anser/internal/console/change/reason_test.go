package change_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/registry"
)

// A reason with which the rules or the canary do not fit into the registry is refused, and the
// answer says what the limit is.
func TestReasonsTooLong(t *testing.T) {
	v := system(t).viewer("")
	reason := strings.Repeat("x", registry.MaxDocument)
	var p struct{ Error, Advice string }
	for _, q := range []struct{ method, path, body string }{
		{"PUT", "/api/rules/arith", `{"text":"rules: {}","version":0,"reason":"` + reason + `"}`},
		{"POST", "/api/instances", `{"service":"arith","instance":"one","state":"disabled","reason":"` + reason + `"}`},
		{"POST", "/api/canary", `{"service":"arith","version":"2.0","share":10,"bounds":{"errors":0.5},"reason":"` + reason + `"}`},
	} {
		got, text := v.send(q.method, q.path, q.body)
		if err := json.Unmarshal([]byte(text), &p); err != nil || got != 413 || !strings.Contains(p.Error, "at most 262144") || !strings.Contains(p.Advice, "shorter reason") {
			t.Errorf("%s %s: %d %.300s, %v", q.method, q.path, got, text, err)
		}
	}
	var rules struct{ Version int }
	if v.expect(200, "GET", "/api/rules/arith", "", &rules); rules.Version != 0 {
		t.Errorf("the rules are at version %d", rules.Version)
	}
}

// What users write is shown in the order in which it is written.
func TestReasonsThatHide(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	const reason, shown = "disk \u202ekcolb", "disk ?kcolb"
	var rules struct{ Comment string }
	v.expect(200, "PUT", "/api/rules/arith", `{"text":"rules: {}","version":0,"reason":"`+reason+`"}`, nil)
	v.expect(200, "GET", "/api/rules/arith", "", &rules)
	var history []struct{ Comment string }
	v.expect(200, "GET", "/api/rules/arith/history", "", &history)
	v.expect(200, "POST", "/api/canary", `{"service":"arith","version":"2.0","share":10,"bounds":{"errors":0.5},"reason":"`+reason+`"}`, nil)
	var canary struct{ Reason string }
	v.expect(200, "GET", "/api/canary/arith", "", &canary)
	var canaries []struct{ Reason string }
	v.expect(200, "GET", "/api/canary", "", &canaries)
	if rules.Comment != shown || len(history) != 1 || history[0].Comment != shown || canary.Reason != shown || len(canaries) != 1 || canaries[0].Reason != shown {
		t.Errorf("%q, %q, %q, %q", rules, history, canary, canaries)
	}
	var log []audit.Entry
	v.expect(200, "GET", "/api/audit", "", &log)
	for _, e := range log {
		if e.Reason != shown {
			t.Errorf("%+v", e)
		}
	}
	if sum, err := audit.Verify(s.log, ""); err != nil || int(sum.Entries) != len(log) {
		t.Errorf("%+v, %v", sum, err)
	}
}
