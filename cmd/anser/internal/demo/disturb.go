package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/child"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// kill kills an instance with SIGKILL and starts a replacement.
func (f *fleet) kill(ctx context.Context, in *instance) error {
	process, address := f.take(in, killed)
	f.tell(Event{"killed", in.id, fmt.Sprintf("SIGKILL to process %d at %s", process.PID(), address)})
	process.Kill()
	<-process.Done()
	return f.replace(ctx, in, &f.kills)
}

// restart drains an instance with SIGTERM, and starts a replacement.
func (f *fleet) restart(ctx context.Context, in *instance) error {
	if err := f.drain(in); err != nil {
		return err
	}
	return f.replace(ctx, in, &f.restarted)
}

// drain ends the process of an instance with SIGTERM.
func (f *fleet) drain(in *instance) error {
	process, address := f.take(in, draining)
	f.tell(Event{"draining", in.id, fmt.Sprintf("SIGTERM to process %d at %s", process.PID(), address)})
	began := time.Now()
	process.End(drainBound)
	if err := process.Failure(); err != nil {
		return fmt.Errorf("instance %s did not drain: %w", in.id, err)
	}
	f.tell(Event{"drained", in.id, "after " + table.Duration(time.Since(began))})
	return nil
}

// take marks an instance whose process is about to end.
func (f *fleet) take(in *instance, state string) (process *child.Child, address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in.state = state
	f.leaving[in.process] = true
	f.changedLocked()
	return in.process, in.address
}

// replace starts a process for an instance without one, waits until clients can find it, and
// increments the counter, if there is one.
func (f *fleet) replace(ctx context.Context, in *instance, counter *int) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	if err := f.launch(ctx, in); err != nil {
		return err
	}
	if err := f.waitUp(ctx, in); err != nil {
		return err
	}
	f.mu.Lock()
	if counter != nil {
		*counter++
	}
	address, pid := in.address, in.process.PID()
	f.mu.Unlock()
	f.tell(Event{"up", in.id, fmt.Sprintf("version %s, process %d at %s after %s", in.version, pid, address, table.Duration(time.Since(began)))})
	return nil
}
