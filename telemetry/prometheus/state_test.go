package prometheus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The target of the client of the system. Dial leaves user and password out of it.
const (
	targetName    = "unsteady://registry/arith"
	labelOfTarget = `target="` + targetName + `"`
)

// wanted are lines of a scrape of a system after its load.
var wanted = []string{
	"anser_servers 2",
	"anser_clients{" + labelOfTarget + "} 1",
	`anser_server_calls_total{code="OK",method="Arith.Add"}`,
	`anser_server_calls_total{code="NOT_FOUND",method="Arith.Fail"}`,
	`anser_server_calls_total{code="UNIMPLEMENTED",method="_OTHER"}`,
	`anser_server_calls_refused_total{method="Arith.One"}`,
	`anser_server_limit_hits_total{limit="MaxInFlight"}`,
	`anser_server_calls_shed_total{priority="normal"}`,
	`anser_server_adaptive_limit{method=""}`,
	"anser_server_connections ",
	"anser_server_connections_accepted_total",
	"anser_server_panics_total",
	"anser_client_instances{" + `state="connected",` + labelOfTarget + "} 2",
	"anser_client_instances{" + `state="down",` + labelOfTarget + "} 1",
	"anser_client_instances{" + `state="ejected",` + labelOfTarget + "} 0",
	"anser_client_breakers{" + `state="open",` + labelOfTarget + "}",
	"anser_client_health_changes_total{" + `change="breaker_opened",` + labelOfTarget + "}",
	`anser_client_rules_version{target="memory:///arith"} 1`,
	`anser_client_rules_trouble{target="memory:///arith"} 0`,
	"anser_client_registry_outage_seconds{" + labelOfTarget + "}",
	"anser_client_registry_updated_timestamp_seconds{" + labelOfTarget + "}",
	`anser_client_calls_total{code="OK",method="Arith.Add",` + labelOfTarget + "}",
	`anser_client_calls_retried_total{method="Arith.Add",` + labelOfTarget + "}",
}

func TestState(t *testing.T) {
	s := newSystem(t)
	var text string
	missing := "everything"
	for deadline := time.Now().Add(time.Minute); missing != "" && time.Now().Before(deadline); {
		s.load(t, context.Background())
		text = exposition(t, gather(t, s.meter))
		missing = ""
		for _, line := range wanted {
			if found := lineOf(text, line); found == "" || strings.HasSuffix(found, " 0") && !strings.HasSuffix(line, " 0") {
				missing = line
			}
		}
	}
	if missing != "" {
		t.Fatalf("%s is missing:\n%s", missing, text)
	}
	if strings.Contains(text, "secret") {
		t.Error("the password of a target is in the metrics")
	}
}

// lineOf returns the line of the text that begins with the prefix.
func lineOf(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}

// Counters do not fall when servers and clients end, and gauges no longer count these.
func TestEndedServersCount(t *testing.T) {
	s := newSystem(t)
	r := newGatherer(s.meter)
	s.load(t, context.Background())
	r.text(t)
	s.load(t, context.Background()) // what is counted after the last scrape counts, too
	for _, server := range s.servers {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s.client.Close()
	s.ruled.Close()
	stats, status := s.servers[0].Stats(), s.client.Status()
	for range 2 {
		text := r.text(t)
		for _, line := range []string{
			fmt.Sprintf("anser_server_connections_accepted_total %d", stats.Accepted+s.servers[1].Stats().Accepted),
			fmt.Sprintf("anser_server_panics_total %d", stats.Panics),
			fmt.Sprintf(`anser_server_limit_hits_total{limit="MaxInFlight"} %d`, stats.LimitsHit["MaxInFlight"]),
			fmt.Sprintf("anser_client_health_changes_total{change=\"breaker_opened\",%s} %d", labelOfTarget, status.Health[2]),
		} {
			if lineOf(text, line) != line {
				t.Errorf("%s is missing:\n%s", line, text)
			}
		}
		for _, gauge := range []string{"anser_servers ", "anser_clients{", "anser_server_connections ", "anser_client_instances{"} {
			if line := lineOf(text, gauge); line != "" {
				t.Errorf("%s, but all servers and clients have ended", line)
			}
		}
	}
}
