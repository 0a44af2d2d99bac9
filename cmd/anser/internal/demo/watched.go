package demo

import (
	"errors"
	"log/slog"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// watched measures a process of the demo, and serves its admin page.
type watched struct {
	meter  *telemetry.Meter
	page   *admin.Page
	url    string
	served chan error
}

// slowCall is the duration from which the pages keep a call as a slow one: the steps of the demo
// slow calls down by more.
const slowCall = 20 * time.Millisecond

// watch serves the page of this process on a free port, with its metrics and what the options add.
func watch(name string, opts ...admin.Option) (*watched, error) {
	w := &watched{meter: telemetry.New(telemetry.Slow(slowCall)), served: make(chan error, 1)}
	var err error
	if w.page, err = admin.New(w.meter, append(opts, admin.Name(name), admin.Logger(slog.New(slog.DiscardHandler)), admin.Handle(metricsPath, prometheus.Handler(w.meter)))...); err != nil {
		return nil, err
	}
	l, err := w.page.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.url = "http://" + l.Addr().String() + "/"
	go func() { w.served <- w.page.Serve(l) }()
	return w, nil
}

// close ends the page.
func (w *watched) close() error {
	err := w.page.Close()
	if end := <-w.served; !errors.Is(end, admin.ErrClosed) {
		err = errors.Join(err, end)
	}
	return err
}
