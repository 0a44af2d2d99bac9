// Package prometheus exports what a [telemetry.Meter] measures, and the counters of its servers and
// clients, to Prometheus.
//
//	meter := telemetry.New()
//	mux := http.NewServeMux()
//	mux.Handle("/metrics", prometheus.Handler(meter))
//	s := anser.NewServer(meter.Option(), protocols.All(protocols.Handler(mux)))
//
// docs/observability.md lists the metrics. The folder of this package has a dashboard for Grafana
// and rules for alerts. Nothing is computed for a call: all values are read when Prometheus scrapes
// them.
package prometheus

import (
	"net/http"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// Collector collects the metrics of a meter; see [New]. It is safe for concurrent use.
type Collector struct {
	meter   *telemetry.Meter
	servers *totals[serverSource]
	clients *totals[clientSource]
}

// New returns a collector for a registry that the program has already. The metrics of a meter need
// one collector per process: two in one registry collide.
func New(m *telemetry.Meter) *Collector {
	return &Collector{m, newTotals[serverSource](), newTotals[clientSource]()}
}

// Describe implements [prom.Collector].
func (c *Collector) Describe(ch chan<- *prom.Desc) {
	for _, f := range families {
		ch <- f.desc
	}
}

// Collect implements [prom.Collector]. It takes the locks of the servers and clients for a moment
// each.
func (c *Collector) Collect(ch chan<- prom.Metric) {
	collectCalls(ch, c.meter.Snapshot())
	c.servers.sum(sources(c.meter.Servers(), func(s *anser.Server) serverSource { return serverSource{s} })).collect(ch)
	c.clients.sum(sources(c.meter.Clients(), func(k *anser.Client) clientSource { return clientSource{k} })).collect(ch)
}

// maxScrapes is how many requests a [Handler] serves at a time.
const maxScrapes = 8

// Handler returns a handler for /metrics with the metrics of the meter, of Go's runtime, of the
// process, and of more collectors, if there are any. It panics if two have a metric of the same
// name. It offers the text format, OpenMetrics, and the format with native histograms. Callers
// that ask at the same time get one collection, and more than 8 of them are answered with 503.
//
// The handler does not ask for credentials. Names of methods and targets can be read from what it
// serves: mount it where only the callers that may read them get to.
func Handler(m *telemetry.Meter, more ...prom.Collector) http.Handler {
	r := prom.NewRegistry()
	r.MustRegister(New(m), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(more...)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		EnableOpenMetrics: true, // for exemplars
		ErrorHandling:     promhttp.ContinueOnError,
		CoalesceGather:    true, MaxRequestsInFlight: maxScrapes,
	})
}
