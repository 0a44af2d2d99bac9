package prometheus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/servers"
)

// server is a process of Prometheus that scrapes a system.
type server struct {
	url      string
	features []string
}

// scrape runs a Prometheus with the rules for alerts until the end of the test. The features are
// those of its flag.
func scrape(t *testing.T, address string, features ...string) *server {
	t.Helper()
	rules, err := filepath.Abs("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: arith, static_configs: [{targets: [%q]}]}]
`, rules, address)
	return &server{servers.Prometheus(t, config, features...), features}
}

var plain = http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (s *server) get(path string, query url.Values) ([]byte, error) {
	resp, err := plain.Get(s.url + path + "?" + query.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

// point is a value that a query returns.
type point struct {
	Metric map[string]string
	Value  [2]any
}

func (p *point) value() float64 {
	text, _ := p.Value[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return -1
	}
	return v
}

// query returns the answer to a query as of now. Histograms have no value.
func (s *server) query(expr string) ([]point, error) {
	body, err := s.get("/api/v1/query", url.Values{"query": {expr}})
	if err != nil {
		return nil, err
	}
	var answer struct{ Data struct{ Result []point } }
	err = json.Unmarshal(body, &answer)
	return answer.Data.Result, err
}

// await repeats a query until its answer is as wanted.
func (s *server) await(t *testing.T, expr string, wanted func(list []point) bool) []point {
	t.Helper()
	var list []point
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if list, err = s.query(expr); err == nil && wanted(list) {
			return list
		}
		if err != nil && strings.Contains(err.Error(), "bad_data") {
			break
		}
	}
	t.Errorf("with %v, the query\n%s\nis answered with %v: %v", s.features, expr, list, err)
	return nil
}

// TestPrometheus lets Prometheus scrape a server with load, as native histograms and as text, and
// makes all queries of the dashboard and of the alerts.
func TestPrometheus(t *testing.T) {
	s := newSystem(t)
	ctx, cancel := context.WithCancel(t.Context())
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		for ctx.Err() == nil {
			s.load(t, ctx)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	defer func() {
		cancel()
		<-loaded
	}()
	for _, features := range [][]string{{"exemplar-storage", "native-histograms"}, {"exemplar-storage"}} {
		p := scrape(t, s.address, features...)
		native := slices.Contains(features, "native-histograms")
		some := func(list []point) bool { return len(list) > 0 }
		p.await(t, `anser_server_calls_total{method="Arith.Add",code="OK",job="arith"} > 0`, some)
		p.await(t, `rate(anser_client_calls_total{target="`+targetName+`",code="NOT_FOUND"}[10s]) > 0`, some)
		if native {
			p.await(t, `histogram_count(anser_server_call_duration_seconds{method="Arith.Add",code="OK"}) > 0`, some)
		} else {
			p.await(t, `anser_server_call_duration_seconds_bucket{method="Arith.Add",code="OK",le="+Inf"} > 0`, some)
		}
		for _, q := range dashboardQueries(t) {
			switch {
			case q.panel == "Durations, from native histograms" && !native || q.panel == "Durations, from classic buckets" && native:
				continue
			}
			p.await(t, q.expr, some)
		}
		// The quantile lies where the handler that sleeps for 5 ms puts it.
		for _, q := range dashboardQueries(t) {
			if q.panel == "p50 by method" {
				p.await(t, q.expr, func(list []point) bool {
					return slices.ContainsFunc(list, func(p point) bool { return p.Metric["method"] == "Arith.One" && p.value() > 0.004 })
				})
			}
		}
		p.rules(t)
		if !native { // this Prometheus does not take exemplars of native histograms
			p.exemplar(t)
		}
	}
}

// rules checks that all alerts are evaluated without an error.
func (s *server) rules(t *testing.T) {
	t.Helper()
	type rule struct{ Name, Health, LastError string }
	var names []string
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var body []byte
		if body, err = s.get("/api/v1/rules", nil); err != nil {
			continue
		}
		var answer struct {
			Data struct{ Groups []struct{ Rules []rule } }
		}
		if err = json.Unmarshal(body, &answer); err != nil {
			break
		}
		names = nil
		for _, g := range answer.Data.Groups {
			for _, r := range g.Rules {
				if names = append(names, r.Name); r.Health != "ok" {
					err = errors.Join(err, fmt.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError))
				}
			}
		}
		if err == nil && len(names) > 10 {
			return
		}
	}
	t.Errorf("with %v, of the alerts %v: %v", s.features, names, err)
}

// exemplar checks that the trace of a call was stored.
func (s *server) exemplar(t *testing.T) {
	t.Helper()
	now := time.Now()
	body, err := s.get("/api/v1/query_exemplars", url.Values{
		"query": {"anser_server_call_duration_seconds_bucket"},
		"start": {fmt.Sprint(now.Add(-time.Hour).Unix())}, "end": {fmt.Sprint(now.Add(time.Hour).Unix())},
	})
	if err != nil || !strings.Contains(string(body), `"trace_id":"01000000000000000000000000000000"`) {
		t.Errorf("%v: %s", err, body)
	}
}
