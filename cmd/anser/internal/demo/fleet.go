package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/child"
	"github.com/anser-rpc/anser/registry"
)

// The states of an instance.
const (
	starting = "starting"
	up       = "up" // clients find it in the registry
	draining = "draining"
	killed   = "killed"
	frozen   = "frozen"  // its process is paused
	ejected  = "ejected" // ejected by the callers' client
	ended    = "ended"
)

// instance is one of the nine, with all of its processes, or a canary.
type instance struct {
	service, id, version string

	// Guarded by the fleet's mutex.
	process *child.Child
	address string
	state   string
}

// fleet holds the processes of all instances.
type fleet struct {
	url       string
	calls     string // folder of the recordings
	files     string // folder that posts serves
	reg       registry.Registry
	tell      func(Event)
	group     *child.Group
	instances []*instance     // by service; modified by the goroutine of the steps, under the mutex
	ctx       context.Context // of the watches of the registry
	cancel    context.CancelFunc
	wg        sync.WaitGroup

	mu        sync.Mutex            // guards the fields below and the instances
	listed    map[string]string     // addresses by instance, according to the registry
	leaving   map[*child.Child]bool // processes that are being stopped
	changed   chan struct{}         // closed and replaced when a state changed
	failed    error                 // the first process that ended unexpectedly
	kills     int
	restarted int
}

func newFleet(url, calls, files string, reg registry.Registry, tell func(Event)) *fleet {
	f := &fleet{
		url: url, calls: calls, files: files, reg: reg, tell: tell, group: child.NewGroup(),
		listed: make(map[string]string), leaving: make(map[*child.Child]bool), changed: make(chan struct{}),
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	for _, s := range services {
		for n := range instancesOfService {
			f.instances = append(f.instances, &instance{service: s.name, id: instanceID(s.name, n+1), version: usualVersion, state: starting})
		}
	}
	return f
}

// start starts all instances and waits until clients can find them.
func (f *fleet) start(ctx context.Context) error {
	for _, s := range services {
		f.wg.Go(func() { f.watch(s.name) })
	}
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	errs := make([]error, len(f.instances))
	var wg sync.WaitGroup
	for i, in := range f.instances {
		wg.Go(func() { errs[i] = f.launch(ctx, in) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return f.waitUp(ctx, f.instances...)
}

// watch follows the registry.
func (f *fleet) watch(service string) {
	f.reg.Watch(f.ctx, service, func(list []registry.Instance) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, in := range f.instances {
			if in.service == service {
				delete(f.listed, in.id)
			}
		}
		for _, in := range list {
			f.listed[in.ID] = in.Address
		}
		f.noteListedLocked()
	}, nil)
}

func (f *fleet) noteListedLocked() {
	for _, in := range f.instances {
		if in.state == starting && in.address != "" && f.listed[in.id] == in.address {
			in.state = up
		}
	}
	f.changedLocked()
}

func (f *fleet) changedLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// launch starts a process for the instance and waits until it serves.
func (f *fleet) launch(ctx context.Context, in *instance) error {
	fail := func(err error) error { return fmt.Errorf("instance %s: %w", in.id, err) }
	process, err := f.group.Start(InstanceOptions{in.service, in.id, in.version, f.url, filepath.Join(f.calls, in.id), f.files}.args()...)
	if err != nil {
		return fail(err)
	}
	f.mu.Lock()
	in.process, in.state, in.address = process, starting, ""
	f.mu.Unlock()
	f.wg.Go(func() { f.await(in, process) })
	var said ready
	if err := process.Ready(ctx, &said); err != nil {
		return fail(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	in.address = said.Address
	f.noteListedLocked()
	return nil
}

// await handles the end of a process.
func (f *fleet) await(in *instance, process *child.Child) {
	<-process.Done()
	f.mu.Lock()
	expected := f.leaving[process]
	delete(f.leaving, process)
	if !expected {
		in.state = ended
		if f.failed == nil {
			f.failed = fmt.Errorf("instance %s ended by itself: %w", in.id, process.Reason())
		}
	}
	f.changedLocked()
	f.mu.Unlock()
	if !expected {
		f.tell(Event{"ended", in.id, "by itself: " + process.Reason().Error()})
	}
}

// add adds a canary of the service, after its other instances. It has no process yet.
func (f *fleet) add(service string) *instance {
	in := &instance{service: service, id: canaryID(service), version: canaryVersion, state: starting}
	f.mu.Lock()
	defer f.mu.Unlock()
	after := 0
	for i, other := range f.instances {
		if other.service == service {
			after = i + 1
		}
	}
	f.instances = slices.Insert(slices.Clone(f.instances), after, in)
	return in
}

// remove removes an instance whose process has ended.
func (f *fleet) remove(in *instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.instances = slices.DeleteFunc(slices.Clone(f.instances), func(other *instance) bool { return other == in })
}

// mark sets the state of a running instance, and returns its process and address.
func (f *fleet) mark(in *instance, state string) (process *child.Child, address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if in.state != ended {
		in.state = state
	}
	f.changedLocked()
	return in.process, in.address
}

// waitUp waits until clients can find the instances.
func (f *fleet) waitUp(ctx context.Context, wanted ...*instance) error {
	for {
		f.mu.Lock()
		changed, failed := f.changed, f.failed
		var missing *instance
		for _, in := range wanted {
			if in.state != up {
				missing = in
			}
		}
		f.mu.Unlock()
		switch {
		case missing == nil:
			return nil
		case failed != nil:
			return failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("instance %s is not up: %w", missing.id, ctx.Err())
		}
	}
}

// failure returns the error of a process that ended unexpectedly, or nil.
func (f *fleet) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// at returns the instance at an address, or "".
func (f *fleet) at(address string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range f.instances {
		if in.address == address {
			return in.id
		}
	}
	return ""
}

// close ends all processes and waits for them. There must be no concurrent calls.
func (f *fleet) close() {
	f.mu.Lock()
	var running []*child.Child
	for _, in := range f.instances {
		if in.process != nil {
			f.leaving[in.process] = true
			running = append(running, in.process)
		}
	}
	f.mu.Unlock()
	var wg sync.WaitGroup
	for _, process := range running {
		wg.Go(func() { process.End(endGrace) })
	}
	wg.Wait()
	f.cancel()
	f.wg.Wait()
	f.group.Close()
}

// endGrace is how long processes may take to end at the end of the demo.
const endGrace = 2 * time.Second
