package etcd

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
)

// Watch implements registry.Resolver. It lists the service and watches from the revision after the
// list's. Whatever ends the watch (a lost connection, a compaction, a new leader), it then lists
// again: so it sees the result of every change, even on a server that came back with less data.
// update is called only if the list has changed. A record that cannot be decoded is reported as
// trouble and left out.
func (r *Registry) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	w := &watch{prefix: r.servicePrefix(service)}
	w.mirror = mirror[[]registry.Instance]{
		registry: r, what: fmt.Sprintf("watch service %q", service), copied: w.sorted, equal: registry.Equal,
		wake: make(chan struct{}, 1),
	}
	pursue := func(ctx context.Context) { r.pursue(ctx, w, w.prefix, clientv3.GetPrefixRangeEnd(w.prefix)) }
	return w.tell(ctx, pursue, update, trouble)
}

// watch is a copy of the instances of a service.
type watch struct {
	mirror[[]registry.Instance]
	prefix    string
	instances map[string]registry.Instance // by etcd key; guarded by mu
}

func (w *watch) sorted() []registry.Instance {
	list := slices.AppendSeq(make([]registry.Instance, 0, len(w.instances)), maps.Values(w.instances))
	if w.registry.rpcx {
		return rpcxlayout.Once(list)
	}
	registry.Sort(list)
	return list
}

// list reads all instances and returns the revision of that state.
func (w *watch) list(ctx context.Context) (revision int64, err error) {
	var resp *clientv3.GetResponse
	err = w.registry.client.attempt(ctx, func(ctx context.Context) (err error) {
		resp, err = w.registry.client.kv.Get(ctx, w.prefix, clientv3.WithPrefix())
		return err
	})
	if err != nil {
		return 0, err
	}
	w.change(func() {
		w.instances, w.listed = make(map[string]registry.Instance, len(resp.Kvs)), true
		for _, kv := range resp.Kvs {
			w.putLocked(kv)
		}
	})
	return resp.Header.Revision, nil
}

func (w *watch) apply(events []*mvccpb.Event) {
	if len(events) == 0 {
		return
	}
	w.change(func() {
		for _, e := range events {
			if e.Type == mvccpb.Event_DELETE {
				delete(w.instances, string(e.Kv.Key))
			} else {
				w.putLocked(e.Kv)
			}
		}
	})
}

func (w *watch) putLocked(kv *mvccpb.KeyValue) {
	if w.registry.rpcx && !rpcxlayout.IsServer(string(kv.Key[len(w.prefix):])) {
		return // another key of rpcx's plugins
	}
	in, err := w.registry.decode(kv)
	if err != nil {
		w.problem = err
		delete(w.instances, string(kv.Key))
		return
	}
	w.instances[string(kv.Key)] = in
}
