package prometheus_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

var update = flag.Bool("update", false, "write the golden file")

// ended makes the meter measure a call without making it.
func ended(m *telemetry.Meter, c *anser.CallInfo) {
	m.Observer().CallEnded(context.Background(), c)
}

// gatherer scrapes a meter.
type gatherer struct{ *prom.Registry }

func newGatherer(m *telemetry.Meter) gatherer {
	r := prom.NewPedanticRegistry()
	r.MustRegister(prometheus.New(m))
	return gatherer{r}
}

func (g gatherer) families(t testing.TB) []*dto.MetricFamily {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func (g gatherer) text(t testing.TB) string {
	t.Helper()
	return exposition(t, g.families(t))
}

// names returns the names of all metrics.
func names(t testing.TB) (all []string) {
	t.Helper()
	list := make(chan *prom.Desc, 1000)
	prometheus.New(telemetry.New()).Describe(list)
	close(list)
	for d := range list {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		all = append(all, name)
	}
	return all
}

// gather returns what the first scrape of the meter collects.
func gather(t testing.TB, m *telemetry.Meter) []*dto.MetricFamily {
	t.Helper()
	return newGatherer(m).families(t)
}

// exposition returns the text of a scrape.
func exposition(t testing.TB, families []*dto.MetricFamily) string {
	t.Helper()
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestExposition(t *testing.T) {
	m := telemetry.New()
	for i := range 100 {
		ended(m, &anser.CallInfo{
			Server: true, Method: "Arith.Add", Duration: time.Duration(i) * 100 * time.Microsecond, RequestBytes: 10, ReplyBytes: 20,
			Queue: time.Millisecond, Decode: 2 * time.Millisecond, Handle: 3 * time.Millisecond, Encode: 4 * time.Millisecond,
		})
	}
	for code := anser.Canceled; code <= anser.Unauthenticated; code++ {
		ended(m, &anser.CallInfo{Server: true, Method: "Arith.Div", Duration: time.Second, Err: &anser.Error{Code: code, Outcome: anser.Executed}})
	}
	ended(m, &anser.CallInfo{Server: true, Method: "Arith.Div", Duration: time.Second, Err: &anser.Error{Code: 20, Outcome: anser.Executed}})
	ended(m, &anser.CallInfo{Server: true, Err: &anser.Error{Code: anser.Unimplemented, Outcome: anser.Refused}})
	ended(m, &anser.CallInfo{Server: true, Method: "Arith.Add", Replayed: true, Attempt: 1, Duration: time.Millisecond})
	ended(m, &anser.CallInfo{Target: "etcd://127.0.0.1:2379/arith", Method: "Arith.Add", Attempt: 2, Duration: 20 * time.Second})
	got := exposition(t, gather(t, m))
	golden := filepath.Join("testdata", "exposition.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the exposition differs from %s; -update writes it:\n%s", golden, got)
	}
}

// What callers choose cannot make a scrape fail, nor its lines long or many.
func TestHostileNames(t *testing.T) {
	m := telemetry.New(telemetry.MaxMethods(20))
	long := strings.Repeat("é", 1<<16)
	for _, name := range []string{"a\nb", "a\xffb", "a\xfeb", "\"} 1\nanser_servers 7\n", long, long + "x", "\x00", "{}", "\\"} {
		ended(m, &anser.CallInfo{Target: "t\xff\n" + long, Method: name})
		ended(m, &anser.CallInfo{Server: true, Method: name})
	}
	for i := range 10_000 {
		ended(m, &anser.CallInfo{Target: "t", Method: strings.Repeat("m", i%5000)})
	}
	families := gather(t, m)
	text := exposition(t, families)
	parser := expfmt.NewDecoder(strings.NewReader(text), expfmt.NewFormat(expfmt.TypeTextPlain))
	for range families {
		if err := parser.Decode(new(dto.MetricFamily)); err != nil {
			t.Fatal(err)
		}
	}
	methods := 0
	for _, f := range families {
		for _, x := range f.Metric {
			for _, l := range x.Label {
				if len(l.GetValue()) > 300 {
					t.Errorf("%s{%s} has %d bytes", f.GetName(), l.GetName(), len(l.GetValue()))
				}
				switch l.GetValue() {
				case "a\uFFFDb": // two names that are one in a label
					if f.GetName() == "anser_server_calls_total" && x.Counter.GetValue() != 2 {
						t.Errorf("%v", x)
					}
				}
			}
		}
		if f.GetName() == "anser_client_calls_total" {
			methods = len(f.Metric)
		}
	}
	if methods > 2*21 {
		t.Errorf("%d methods of clients", methods)
	}
	if strings.Contains(text, "\nanser_servers 7") {
		t.Error("a name became a metric")
	}
}

// The latest call of a histogram whose trace is recorded is its exemplar.
func TestExemplar(t *testing.T) {
	m := telemetry.New()
	trace := anser.Trace{TraceID: [16]byte{0xab, 15: 1}, SpanID: [8]byte{0xcd, 7: 2}, Flags: 1}
	for _, took := range []time.Duration{3 * time.Millisecond, time.Hour} {
		m.Observer().CallEnded(anser.WithTrace(context.Background(), trace), &anser.CallInfo{Server: true, Method: "A.B", Duration: took})
		var found []*dto.Exemplar
		for _, f := range gather(t, m) {
			if f.GetName() != "anser_server_call_duration_seconds" {
				continue
			}
			h := f.Metric[0].Histogram
			found = append(found, h.Exemplars...)
			for i, b := range h.Bucket {
				if e := b.Exemplar; e != nil {
					found = append(found, e)
					if *b.UpperBound < took.Seconds() || i > 0 && *h.Bucket[i-1].UpperBound >= took.Seconds() {
						t.Errorf("a call of %v is in the bucket up to %v s", took, *b.UpperBound)
					}
				}
			}
		}
		if len(found) != 2 {
			t.Fatalf("%d exemplars", len(found))
		}
		for _, e := range found {
			if e.GetValue() != took.Seconds() || e.Label[0].GetValue() != "cd00000000000002" || e.Label[1].GetValue() != "ab000000000000000000000000000001" {
				t.Errorf("%v", e)
			}
		}
	}
}
