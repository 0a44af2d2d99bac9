package longhistory_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/history"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/longhistory"
	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

type number struct{ N int }

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// process serves a method, calls it all the time, half of the calls in vain, and returns the
// address of its metrics.
func process(t *testing.T) string {
	t.Helper()
	m := telemetry.New()
	s := anser.NewServer(m.Option(), silent, anser.NoSignals())
	err := anser.Handle(s, "Arith.Next", func(_ context.Context, q *number) (*number, error) {
		if q.N%2 == 1 {
			return nil, anser.Errorf(anser.NotFound, "odd")
		}
		return &number{q.N + 1}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := anser.Dial(l.Addr().String(), m.Option(), silent)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	called := make(chan struct{})
	go func() {
		defer close(called)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			<-tick.C
			var out number
			c.Call(ctx, "Arith.Next", &number{n}, &out) //nits:ignore errcheck half of them fail
		}
	}()
	metrics := httptest.NewServer(prometheus.Handler(m))
	t.Cleanup(func() {
		stop()
		<-called
		c.Close()
		s.Close()
		<-served
		metrics.Close()
	})
	return strings.TrimPrefix(metrics.URL, "http://")
}

// A Prometheus that scrapes a process answers for its service, method, instance and edge, and says
// nothing of the time before.
func TestPrometheus(t *testing.T) {
	address := process(t)
	at := servers.Prometheus(t, fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs: [{job_name: a, metrics_path: /, static_configs: [{targets: [%q], labels: {service: shop, id: shop-1}}]}]
`, address))
	s, err := longhistory.New(at, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	series := func(key history.Key) (rate, failed, p50, p99 float64, known int, steps int) {
		now := time.Now()
		out, err := s.Series(t.Context(), key, history.Range{From: now.Add(-3 * time.Hour), To: now})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range out.Rate {
			if r != nil {
				known++
				rate, failed = *r, *out.Failed[i]
				if out.P50[i] != nil {
					p50, p99 = out.P50[i].Seconds(), out.P99[i].Seconds()
				}
			}
		}
		return rate, failed, p50, p99, known, len(out.Rate)
	}
	service := history.Key{Kind: history.OfService, A: "shop"}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if rate, failed, p50, p99, known, steps := series(service); rate > 0 && p50 > 0 {
			if failed < rate/3 || failed > rate*2/3 || p99 < p50 || p99 > 1 || known > 20 || steps < 900 {
				t.Errorf("a rate of %v with %v failed, %v, %v, %d of %d steps", rate, failed, p50, p99, known, steps)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("Prometheus has no figures")
		}
	}
	for _, key := range []history.Key{
		{Kind: history.OfMethod, A: "shop", B: "Arith.Next"}, {Kind: history.OfInstance, A: "shop", B: "shop-1"},
	} {
		if rate, _, _, _, _, _ := series(key); rate == 0 {
			t.Errorf("%v: no rate", key)
		}
	}
	for _, key := range []history.Key{
		{Kind: history.OfMethod, A: "shop", B: `x"} or vector(1) #`},
		{Kind: history.OfInstance, A: "shop", B: "%d%s"},
		{Kind: history.OfService, A: "shop\\"},
		{Kind: history.OfEdge, A: "shop", B: ".*"},
	} {
		if rate, _, _, _, known, _ := series(key); known != 0 {
			t.Errorf("%v: a rate of %v", key, rate)
		}
	}
}

func TestAnswersThatAreWrong(t *testing.T) {
	for want, answer := range map[string]http.HandlerFunc{
		"bytes": func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 5<<20)) },
		"with the status 302": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		},
		"status 400: bad x": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			io.WriteString(w, `{"status":"error","error":"bad x"}`)
		},
		"": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				w.WriteHeader(401)
			}
			io.WriteString(w, `{"status":"success","data":{"result":[{"values":[[1e300,"1"],["x",1],[0,"NaN"],[-5,"7"]]}]}}`)
		},
	} {
		server := httptest.NewServer(answer)
		s, err := longhistory.New(server.URL, "secret")
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		_, err = s.Series(t.Context(), history.Key{Kind: history.OfService, A: "a"}, history.Range{From: now.Add(-time.Hour), To: now})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := s.Series(t.Context(), history.Key{}, history.Range{From: now, To: now}); err == nil {
			t.Error("an empty range was answered")
		}
		s.Close()
		server.Close()
	}
	for _, bad := range []string{"", "127.0.0.1:9090", "file:///x", "http://a:b@c/", "http://c/?q=1"} {
		if _, err := longhistory.New(bad, ""); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// No step that a viewer asks for panics, and an answer never ends long after its range.
func TestHostileSteps(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"status":"success","data":{"result":[]}}`)
	}))
	defer server.Close()
	s, err := longhistory.New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	for _, step := range []time.Duration{-1, 48 * time.Hour, 5e18, 5.9e18, 6e18, math.MaxInt64} {
		r := history.Range{From: now.Add(-3 * time.Hour), To: now, Step: step}
		out, err := s.Series(t.Context(), history.Key{Kind: history.OfService, A: "a"}, r)
		if err != nil || len(out.Rate) == 0 || out.Step > 4*time.Hour {
			t.Errorf("a step of %v: %v steps of %v, %v", step, len(out.Rate), out.Step, err)
		}
	}
}
