package change_test

import (
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
)

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
