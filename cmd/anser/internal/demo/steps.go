package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// performStep performs a step, with a line at its beginning and its end.
func (d *demo) performStep(ctx context.Context, s step, in *instance) error {
	r := StepResult{Step: s.name, Instance: s.about(in)}
	began := time.Now()
	calls, errs, at := d.figures.totals()
	r.At = seconds(at)
	d.setStep(s.name + ": " + subject(r.Instance) + s.what)
	d.tell(Event{"begins", r.Instance, s.name + ": " + s.what})
	showed, err := s.run(d, ctx, in)
	d.setStep("")
	if err != nil || ctx.Err() != nil {
		return err
	}
	nowCalls, nowErrs, _ := d.figures.totals()
	r.Seconds, r.Calls, r.Errors, r.Showed = seconds(time.Since(began)), nowCalls-calls, nowErrs-errs, showed
	d.mu.Lock()
	d.results = append(d.results, r)
	d.mu.Unlock()
	d.tell(Event{"ends", r.Instance, r.String()})
	return nil
}

func subject(instance string) string {
	if instance == "" {
		return ""
	}
	return instance + " "
}

// seconds rounds to a readable precision.
func seconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Millisecond)) / float64(time.Second)
}

func (d *demo) setStep(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step = text
}

// hold is the duration of a state that can be watched.
func (d *demo) hold() time.Duration {
	return min(max(d.o.Every*3/4, minHold), maxHold)
}

const (
	minHold = 300 * time.Millisecond
	maxHold = 5 * time.Second
)

// waitHold waits for that duration, or until ctx is done.
func (d *demo) waitHold(ctx context.Context) {
	wait(ctx, d.hold())
}

// wait waits for a time, or until ctx is done.
func wait(ctx context.Context, how time.Duration) {
	t := time.NewTimer(how)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (d *demo) stepKill(ctx context.Context, in *instance) (string, error) {
	began := time.Now()
	err := d.fleet.kill(ctx, in)
	return "another process was up after " + table.Duration(time.Since(began)), err
}

func (d *demo) stepRestart(ctx context.Context, in *instance) (string, error) {
	began := time.Now()
	err := d.fleet.restart(ctx, in)
	return "drained and replaced within " + table.Duration(time.Since(began)), err
}

// slowBy is the delay that a slow instance adds to each call.
const slowBy = 200 * time.Millisecond

// stepSlow makes an instance slow by its control method. It stays in the registry, and looks
// healthy.
func (d *demo) stepSlow(ctx context.Context, in *instance) (string, error) {
	if err := d.control(ctx, in, slowBy); err != nil {
		return "", err
	}
	all, one := d.figures.share(in)
	d.waitHold(ctx)
	nowAll, nowOne := d.figures.share(in)
	if err := d.control(context.WithoutCancel(ctx), in, 0); err != nil {
		return "", err
	}
	return fmt.Sprintf("with %s on each call it got %s of the %s calls to %s",
		table.Duration(slowBy), table.Count(nowOne-one), table.Count(nowAll-all), in.service), nil
}

const controlBound = 5 * time.Second

// control sets the delay of an instance.
func (d *demo) control(ctx context.Context, in *instance, by time.Duration) error {
	d.fleet.mu.Lock()
	address := in.address
	d.fleet.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, controlBound)
	defer cancel()
	c, err := anser.Dial(address, dialOptions()...)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := Slow.Call(ctx, c, &SlowArgs{Micros: by.Microseconds()}); err != nil {
		return fmt.Errorf("instance %s: %w", in.id, err)
	}
	return nil
}

// stepOutage stops the registry, and starts it again with its data.
func (d *demo) stepOutage(ctx context.Context, _ *instance) (string, error) {
	began := time.Now()
	if err := d.store.stop(); err != nil {
		return "", err
	}
	d.tell(Event{Kind: "stopped", Text: "the registry at " + d.url})
	d.waitHold(ctx)
	away := time.Since(began)
	if ctx.Err() != nil {
		return "", nil // the demo ends
	}
	if err := d.store.start(ctx); err != nil {
		return "", err
	}
	d.tell(Event{Kind: "started", Text: fmt.Sprintf("the registry again after %s", table.Duration(away))})
	bounded, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	names, err := d.fleet.reg.Services(bounded)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s without a registry; it has %d services again", table.Duration(away), len(names)), nil
}
