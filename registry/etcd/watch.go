package etcd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry"
)

// Watch implements registry.Resolver. It lists the service and watches from the revision after the
// list's. Whatever ends the watch (a lost connection, a compaction, a new leader) makes it list
// again: so it sees all that happened meanwhile, even on a server that came back with less than it
// had. update is called only where that differs. A record that cannot be read is reported as
// trouble and left out.
func (r *Registry) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	ctx, cancel := r.life.Within(ctx)
	w := &watch{registry: r, prefix: r.servicePrefix(service), wake: make(chan struct{}, 1)}
	stopped := make(chan struct{})
	defer func() { cancel(); <-stopped }()
	if !r.life.Go(func() { defer close(stopped); r.pursue(ctx, w, w.prefix, clientv3.GetPrefixRangeEnd(w.prefix)) }) {
		close(stopped)
		return registry.ErrClosed
	}
	var last []registry.Instance
	for current := false; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.wake:
		}
		list, listed, problem, fatal := w.take()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if fatal != nil {
			return fmt.Errorf("watch service %q: %w", service, fatal)
		}
		if problem != nil {
			current = false
			if trouble != nil {
				trouble(problem)
			}
		}
		if listed && (!current || !registry.Equal(list, last)) {
			update(list)
			current, last = true, list
		}
	}
}

// watch joins the goroutine that hears from etcd with the one that calls the watcher. What comes
// in while the watcher is busy is merged, so that a slow one neither holds up the stream nor is
// called for each step.
type watch struct {
	registry *Registry
	prefix   string
	wake     chan struct{} // holds a token when there is something to take

	mu        sync.Mutex                   // guards what follows
	instances map[string]registry.Instance // by etcd key
	listed    bool                         // instances are what etcd has, as far as is known
	problem   error                        // not yet reported
	fatal     error
}

// take returns what is to be told.
func (w *watch) take() (list []registry.Instance, listed bool, problem, fatal error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	problem, w.problem = w.problem, nil
	if !w.listed {
		return nil, false, problem, w.fatal
	}
	list = slices.AppendSeq(make([]registry.Instance, 0, len(w.instances)), maps.Values(w.instances))
	registry.Sort(list)
	return list, true, problem, w.fatal
}

func (w *watch) failed(err error, fatal bool) {
	w.mu.Lock()
	w.listed, w.problem = false, err
	if fatal {
		w.fatal = err
	}
	w.mu.Unlock()
	w.signal()
}

func (w *watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// list reads all instances and returns the revision at which etcd had them.
func (w *watch) list(ctx context.Context) (revision int64, err error) {
	var resp *clientv3.GetResponse
	err = w.registry.client.attempt(ctx, func(ctx context.Context) (err error) {
		resp, err = w.registry.client.kv.Get(ctx, w.prefix, clientv3.WithPrefix())
		return err
	})
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	w.instances, w.listed = make(map[string]registry.Instance, len(resp.Kvs)), true
	for _, kv := range resp.Kvs {
		w.putLocked(kv)
	}
	w.mu.Unlock()
	w.signal()
	return resp.Header.Revision, nil
}

func (w *watch) apply(events []*mvccpb.Event) {
	if len(events) == 0 {
		return
	}
	w.mu.Lock()
	for _, e := range events {
		if e.Type == mvccpb.Event_DELETE {
			delete(w.instances, string(e.Kv.Key))
		} else {
			w.putLocked(e.Kv)
		}
	}
	w.mu.Unlock()
	w.signal()
}

func (w *watch) putLocked(kv *mvccpb.KeyValue) {
	in, err := w.registry.decode(kv)
	if err != nil {
		w.problem = err
		delete(w.instances, string(kv.Key))
		return
	}
	w.instances[string(kv.Key)] = in
}
