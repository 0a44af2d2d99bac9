package etcd

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
)

// Leases implements registry.LeaseReader. A key without a lease, such as one written with etcdctl,
// stays forever.
func (r *Registry) Leases(ctx context.Context, service string) ([]registry.Lease, error) {
	if err := registry.CheckService(service); err != nil {
		return nil, err
	}
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	fail := func(err error) error { return fmt.Errorf("read the leases of %q: %w", service, err) }
	prefix := r.servicePrefix(service)
	var resp *clientv3.GetResponse
	err := r.client.retry(ctx, func(ctx context.Context) (err error) {
		resp, err = r.client.kv.Get(ctx, prefix, clientv3.WithPrefix())
		return err
	})
	if err != nil {
		return nil, fail(err)
	}
	known := make(map[int64]registry.Lease)
	var list []registry.Lease
	for _, kv := range resp.Kvs {
		if r.rpcx && !rpcxlayout.IsServer(string(kv.Key[len(prefix):])) {
			continue // another key of rpcx's plugins
		}
		in, err := r.decode(kv)
		if err != nil {
			continue
		}
		l, seen := known[kv.Lease]
		if !seen && kv.Lease != 0 {
			if l, err = r.lifetime(ctx, kv.Lease); err != nil {
				return nil, fail(err)
			}
			known[kv.Lease] = l
		}
		if kv.Lease != 0 && l.TTL == 0 {
			continue // it has expired meanwhile
		}
		l.Key = in.Key()
		list = append(list, l)
	}
	return list, nil
}

// lifetime returns the times of a lease, none if it has expired.
func (r *Registry) lifetime(ctx context.Context, id int64) (l registry.Lease, err error) {
	err = r.client.retry(ctx, func(ctx context.Context) error {
		resp, err := r.client.lease.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: id})
		if err == nil && resp.TTL >= 0 {
			l.TTL, l.Left = time.Duration(resp.GrantedTTL)*time.Second, time.Duration(resp.TTL)*time.Second
		}
		return err
	})
	return l, err
}
