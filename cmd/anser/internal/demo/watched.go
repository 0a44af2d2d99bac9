package demo

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/otlp"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// watched measures and traces a process of the demo, and serves its admin page.
type watched struct {
	meter  *telemetry.Meter
	calls  anser.Option // for the servers and clients
	export *otlp.Export
	page   *admin.Page
	url    string
	served chan error
}

// slowCall is the duration from which the pages keep a call as a slow one, and its spans are
// exported: the steps of the demo slow calls down by more.
const slowCall = 20 * time.Millisecond

// flightCall is the duration from which a call makes its process save what the flight recorder has,
// flightPause the time until it may save again. A process keeps about 40 MiB of it at most.
const (
	flightCall  = 100 * time.Millisecond
	flightPause = time.Minute
)

// tracedShare is the share of the calls whose spans are exported, besides failed and slow ones.
const tracedShare = 0.01

// watchOptions describe a process.
type watchOptions struct {
	service, id string
	listen      string      // address of the page, if it is free; "": any
	failed      func(error) // is told when the collector of the spans begins to fail
}

// watch serves the page of this process, with its metrics and what the options add.
func watch(o watchOptions, opts ...admin.Option) (*watched, error) {
	w := &watched{meter: telemetry.New(telemetry.Slow(slowCall)), served: make(chan error, 1)}
	var err error
	if w.export, err = otlp.New(otlp.Options{
		Service: o.service, ID: o.id, Meter: w.meter, Share: tracedShare, Slow: slowCall, Failed: o.failed,
	}); err != nil {
		return nil, err
	}
	w.calls = w.export.Option()
	quiet := admin.Logger(slog.New(slog.DiscardHandler))
	opts = append(opts, admin.Name(o.id), quiet, admin.Handle(metricsPath, prometheus.Handler(w.meter)), admin.FlightRecorder(flightCall, flightPause))
	if w.page, err = admin.New(w.meter, opts...); err != nil {
		w.export.Close()
		return nil, err
	}
	l, err := w.listen(o.listen)
	if err != nil {
		w.export.Close()
		return nil, errors.Join(err, w.page.Close())
	}
	w.url = "http://" + l.Addr().String() + "/"
	go func() { w.served <- w.page.Serve(l) }()
	return w, nil
}

// listen takes the address, or a free port.
func (w *watched) listen(address string) (net.Listener, error) {
	if address != "" {
		if l, err := w.page.Listen(address); err == nil {
			return l, nil
		}
	}
	return w.page.Listen("127.0.0.1:0")
}

// close ends the page, and exports the last spans.
func (w *watched) close() error {
	w.export.Close()
	err := w.page.Close()
	if end := <-w.served; !errors.Is(end, admin.ErrClosed) {
		err = errors.Join(err, end)
	}
	return err
}
