package command

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/otlp"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// tracedSlow is the duration from which on the calls of a gateway are traced whatever the share is.
const tracedSlow = 100 * time.Millisecond

// gatewayWatch measures the calls of a gateway.
type gatewayWatch struct {
	stats gatewayStats
	ends  []func()
}

// end ends the page and the export.
func (w *gatewayWatch) end() {
	for _, f := range w.ends {
		f()
	}
}

// watch measures the calls of the gateway with the options if an admin page or a collector wants
// it.
func (f *gatewayFlags) watch(opts *gateway.Options, log *slog.Logger, out io.Writer) (*gatewayWatch, error) {
	w := new(gatewayWatch)
	if f.admin == "" && !otlp.Named() {
		return w, nil
	}
	meter := telemetry.New()
	calls := meter.Option()
	if otlp.Named() {
		if f.traced < 0 || f.traced > 1 {
			return nil, usagef("--traced %v: want a share from 0 to 1", f.traced)
		}
		export, err := otlp.New(otlp.Options{
			Service: "gateway", ID: gatewayID(), Meter: meter, Share: f.traced, Slow: tracedSlow, Metrics: true,
			Failed: func(err error) { log.Warn("the collector does not take spans or metrics", "err", err) },
		})
		if err != nil {
			return nil, &usageError{err}
		}
		calls = export.Option()
		w.ends = append(w.ends, export.Close)
	}
	if f.admin != "" {
		end, err := f.page(&w.stats, meter, log, out)
		if err != nil {
			w.end()
			return nil, err
		}
		w.ends = append(w.ends, end)
	}
	opts.Server, opts.Dial = append(opts.Server, anser.ServerOption(calls)), append(opts.Dial, anser.DialOption(calls))
	return w, nil
}

// gatewayID tells the gateways of several machines apart.
func gatewayID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "gateway"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// page serves the admin page of the gateway, with metrics, at the address of --admin.
func (f *gatewayFlags) page(stats *gatewayStats, meter *telemetry.Meter, log *slog.Logger, out io.Writer) (end func(), err error) {
	pageOptions := []admin.Option{admin.Name("gateway"), admin.Logger(log), admin.Handle("metrics", prometheus.Handler(meter, stats))}
	if token := os.Getenv(adminTokenVariable); token != "" {
		pageOptions = append(pageOptions, admin.Token(token))
	}
	if f.public {
		pageOptions = append(pageOptions, admin.InsecurePublic())
	}
	page, err := admin.New(meter, pageOptions...)
	if err != nil {
		return nil, &usageError{err}
	}
	l, err := page.Listen(f.admin)
	if err != nil {
		return nil, &usageError{err}
	}
	served := make(chan error, 1)
	go func() { served <- page.Serve(l) }()
	fmt.Fprintf(out, "admin page at http://%s/, with metrics at /metrics\n", l.Addr())
	return func() {
		page.Close()
		<-served
	}, nil
}
