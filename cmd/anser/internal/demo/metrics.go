package demo

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// The paths of a server's port that Prometheus asks.
const (
	metricsPath = "/metrics"
	targetsPath = "/targets" // of the process of the demo only
)

// metrics returns the handler of the metrics of a process.
func metrics(meter *telemetry.Meter) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle(metricsPath, prometheus.Handler(meter))
	return mux
}

// watchtower serves the metrics of the demo's callers and entrance, and the addresses of all
// instances, which have their metrics at their own ports.
type watchtower struct {
	address string
	server  *anser.Server
	served  chan error
}

func openWatchtower(meter *telemetry.Meter, r registry.Resolver) (*watchtower, error) {
	mux := metrics(meter)
	mux.Handle(targetsPath, prometheus.Targets(r))
	w := &watchtower{
		server: anser.NewServer(protocols.All(protocols.Handler(mux)), anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler))),
		served: make(chan error, 1),
	}
	l, err := w.server.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.address = "http://" + l.Addr().String()
	go func() { w.served <- w.server.Serve(l) }()
	return w, nil
}

func (w *watchtower) close() error {
	err := w.server.Close()
	if end := <-w.served; !errors.Is(end, anser.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
