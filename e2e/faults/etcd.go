package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/anser-rpc/anser/registry/etcd"
)

// asEtcd runs f with a client of the registry that is none of this project's.
func asEtcd(address string, f func(context.Context, *clientv3.Client) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	return f(ctx, c)
}

// put writes a key, and returns what the registry says to that, "" if it did it.
func put(address string) (said string, err error) {
	err = asEtcd(address, func(ctx context.Context, c *clientv3.Client) error {
		if _, err := c.Put(ctx, "/faults/written", time.Now().String()); err != nil {
			said = err.Error()
		}
		return nil
	})
	return said, err
}

// get returns how many instances of the service the registry has.
func get(address string) (n int, err error) {
	err = asEtcd(address, func(ctx context.Context, c *clientv3.Client) error {
		got, err := c.Get(ctx, instancePrefix, clientv3.WithPrefix())
		if err == nil {
			n = len(got.Kvs)
		}
		return err
	})
	return n, err
}

const instancePrefix = etcd.DefaultPrefix + "/" + service + "/"

// revoke takes the lease of every instance away, and returns how long it took until each had
// exactly one record again, on another lease.
func revoke(address string) (took time.Duration, err error) {
	err = asEtcd(address, func(ctx context.Context, c *clientv3.Client) error {
		got, err := c.Get(ctx, instancePrefix, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		var keys []string
		var leases []int64
		for _, kv := range got.Kvs {
			keys, leases = append(keys, string(kv.Key)), append(leases, kv.Lease)
		}
		if len(keys) != serverCount {
			return fmt.Errorf("the registry has %v, want %d instances", keys, serverCount)
		}
		began := time.Now()
		for _, lease := range leases {
			if _, err := c.Revoke(ctx, clientv3.LeaseID(lease)); err != nil {
				return err
			}
		}
		for {
			got, err := c.Get(ctx, instancePrefix, clientv3.WithPrefix())
			if err != nil {
				return err
			}
			back := 0
			for _, kv := range got.Kvs {
				if slices.Contains(keys, string(kv.Key)) && !slices.Contains(leases, kv.Lease) {
					back++
				}
			}
			if took = time.Since(began); back == len(keys) && len(got.Kvs) == len(keys) {
				return nil
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return took, err
}
