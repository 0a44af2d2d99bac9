package prometheus_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// dashboardQuery is a query of the dashboard, with values for its variables.
type dashboardQuery struct{ panel, expr string }

// dashboardQueries returns the queries of all panels.
func dashboardQueries(t testing.TB) []dashboardQuery {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "10s", "$job", ".*", "$instance", ".*", "$method", ".*", "$target", ".*")
	var all []dashboardQuery
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			expr := variables.Replace(q.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q has a variable that this test does not know: %s", p.Title, expr)
			}
			all = append(all, dashboardQuery{p.Title, expr})
		}
	}
	if len(all) < 30 {
		t.Fatalf("%d queries: does this test still find them?", len(all))
	}
	return all
}

// promtool runs promtool, which must succeed.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	cmd := exec.Command("promtool", args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "" && args[1] == "metrics" {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

func TestAlerts(t *testing.T) {
	promtool(t, "", "check", "rules", "alerts.yaml")
	promtool(t, "", "test", "rules", "alerts_test.yaml")
	rules, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		name := regexp.MustCompile(`alertname: ` + m[1] + "\n")
		if n := len(name.FindAllString(string(tests), -1)); n != 2 {
			t.Errorf("%s has %d tests, want one in which it fires and one in which it does not", m[1], n)
		}
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("docs/observability.md does not say what to do about %s", m[1])
		}
	}
}

// The names and types of the metrics are good style.
func TestCheckMetrics(t *testing.T) {
	s := newSystem(t)
	s.load(t, context.Background())
	promtool(t, exposition(t, gather(t, s.meter)), "check", "metrics")
}

var metricName = regexp.MustCompile(`\banser_[a-z_]+`)

// The dashboard, the alerts and docs/observability.md name metrics that exist, and the page names
// all of them.
func TestNamesOfMetrics(t *testing.T) {
	exist := make(map[string]bool)
	for _, f := range names(t) {
		exist[f] = true
	}
	for _, file := range []string{"dashboard.json", "alerts.yaml", "alerts_test.yaml", "../../docs/observability.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		named := make(map[string]bool)
		for _, name := range metricName.FindAllString(string(text), -1) {
			name = strings.TrimSuffix(name, "_bucket")
			if named[name] = true; !exist[name] {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
		if !strings.HasSuffix(file, ".md") {
			continue
		}
		for name := range exist {
			if !named[name] {
				t.Errorf("%s does not name %s", file, name)
			}
		}
	}
}
