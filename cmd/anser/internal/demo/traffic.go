package demo

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/route"
)

// traffic holds the callers.
type traffic struct {
	clients map[string]*anser.Client // by service
	debug   *anser.Server            // serves the callers' records; nil before it is started
	debugAt string
	ending  chan struct{}   // closed when no further call may be made
	ctx     context.Context // of the calls
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// startTraffic starts the callers of all services.
func startTraffic(url string, o Options, measured anser.DialOption, fleet *fleet, figures *figures, heard func(anser.HealthEvent)) (*traffic, error) {
	t := &traffic{ending: make(chan struct{}), clients: make(map[string]*anser.Client)}
	recorder := route.NewRecorder()
	t.ctx, t.cancel = context.WithCancel(context.Background())
	for _, s := range services {
		opts := append(dialOptions(), measured, route.Rules(route.From(route.Caller{Service: "demo"}), route.Record(recorder)),
			anser.Observe(anser.Observer{Health: heard}))
		c, err := anser.Dial(url+"/"+s.name, opts...)
		if err != nil {
			t.stop()
			return nil, err
		}
		t.clients[s.name] = c
		var interval time.Duration
		if o.Rate > 0 {
			interval = time.Duration(float64(o.Callers) / o.Rate * float64(time.Second))
		}
		for i := range o.Callers {
			k := &caller{
				service: s, client: c, traffic: t, fleet: fleet, figures: figures,
				interval: interval, first: interval * time.Duration(i) / time.Duration(o.Callers),
			}
			t.wg.Go(k.run)
		}
	}
	if err := t.serveDebug(recorder); err != nil {
		t.stop()
		return nil, err
	}
	return t, nil
}

// serveDebug serves "anser rules dry-run --from" and "anser explain --from" for the callers.
func (t *traffic) serveDebug(recorder *route.Recorder) error {
	s := anser.NewServer(anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)))
	if err := errors.Join(recorder.Serve(s), route.ServeExplain(s, t.clients)); err != nil {
		return err
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	t.debug, t.debugAt = s, l.Addr().String()
	t.wg.Go(func() { s.Serve(l) })
	return nil
}

// stopGrace is how long calls in flight may take at the end of the demo.
const stopGrace = 3 * time.Second

// stop ends the callers when their calls have ended, and cancels calls that take too long.
func (t *traffic) stop() {
	close(t.ending)
	late := time.AfterFunc(stopGrace, t.cancel)
	if t.debug != nil {
		t.debug.Close()
	}
	t.wg.Wait()
	late.Stop()
	t.cancel()
	for _, c := range t.clients {
		c.Close()
	}
}

// caller makes one call after another: a closed loop with a pause.
type caller struct {
	service  service
	client   *anser.Client
	traffic  *traffic
	fleet    *fleet
	figures  *figures
	interval time.Duration // interval between the beginnings of two calls; 0: no pause
	first    time.Duration // before the first call
}

func (k *caller) run() {
	next := time.Now().Add(k.first)
	for n := 0; k.pause(next); n++ {
		began := time.Now()
		k.call(n, began)
		if next = next.Add(k.interval); next.Before(began) {
			next = began // a slow call is not made up for
		}
	}
}

// pause waits until the given time, and reports false if no further call may be made.
func (k *caller) pause(until time.Time) bool {
	if wait := time.Until(until); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-k.traffic.ending:
			return false
		case <-t.C:
		}
	}
	select {
	case <-k.traffic.ending:
		return false
	default:
		return true
	}
}

func (k *caller) call(n int, began time.Time) {
	var trailer anser.Metadata
	err := k.service.call(k.traffic.ctx, k.client, n, anser.Trailer(&trailer))
	took := time.Since(began)
	if k.traffic.ctx.Err() != nil {
		return
	}
	id := trailer[instanceKey]
	var failed *anser.Error
	if id == "" && errors.As(err, &failed) {
		id = k.fleet.at(failed.Address)
	}
	k.figures.note(id, took, err)
}
