package demo

import (
	"net/http"

	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// The paths that Prometheus asks: that of an instance on its port, and both of the admin page of
// the demo, whose second one lists the instances.
const (
	metricsPath = "metrics"
	targetsPath = "targets"
)

// metrics returns the handler of the metrics of an instance, for its port.
func metrics(meter *telemetry.Meter) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/"+metricsPath, prometheus.Handler(meter))
	return mux
}
