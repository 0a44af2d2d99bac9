package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/servers"
)

// Prometheus finds all processes of a demo, and scrapes their calls.
func TestDemoIsScraped(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--serve", "127.0.0.1:0", "--every", "0s", "--rate", "50")
	line := p.line("Prometheus finds the instances at")
	_, targets, _ := strings.Cut(line, " at ")
	targets, _, _ = strings.Cut(targets, ",")
	callers := strings.TrimSuffix(strings.TrimPrefix(targets, "http://"), "/targets")
	prometheus := servers.Prometheus(t, fmt.Sprintf(`global: {scrape_interval: 1s}
scrape_configs:
  - {job_name: callers, static_configs: [{targets: [%q]}]}
  - {job_name: services, http_sd_configs: [{url: %q, refresh_interval: 1s}]}
`, callers, targets), "native-histograms")
	for expr, want := range map[string]string{
		`count(anser_servers{job="services"})`: "9",
		`count(count by (service, id, zone, version) (anser_server_calls_total{code="OK",job="services"} > 0))`: "9",
		`count(rate(anser_client_calls_total{job="callers",target=~"etcd://.*"}[10s]) > 0)`:                     "4", // Arith.Add, Arith.Mul, Posts.Query, Front.Page
		`count(histogram_quantile(0.99, rate(anser_server_call_duration_seconds{id="front-1"}[10s])) > 0)`:      "1",
		`count(anser_client_instances{id="front-1",state="connected"} == 3)`:                                    "2", // of arith and posts
	} {
		var got string
		for deadline := time.Now().Add(2 * time.Minute); got != want && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			var answer struct {
				Data struct{ Result []struct{ Value [2]any } }
			}
			text := fetch(t, prometheus+"/api/v1/query?"+url.Values{"query": {expr}}.Encode())
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if got = ""; len(answer.Data.Result) == 1 {
				got = fmt.Sprint(answer.Data.Result[0].Value[1])
			}
		}
		if got != want {
			t.Errorf("%s is %q, want %s", expr, got, want)
		}
	}
	if _, code := p.signal(os.Interrupt); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.errOut.String())
	}
	expectEmpty(t, tmp)
}
