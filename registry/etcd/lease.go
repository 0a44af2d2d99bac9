package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// lease is the lease of all records of a registry. It is used by one goroutine.
type lease struct {
	client *client
	ctx    context.Context // ends with the registry
	ttl    time.Duration   // requested TTL

	id      int64 // 0: none
	granted time.Duration
	renewAt time.Time
	// stream carries the renewals for as long as it works: with a user, etcd would check the
	// password again for each stream, which is slow by design.
	stream pb.Lease_LeaseKeepAliveClient
	cancel context.CancelFunc // ends stream
}

func (l *lease) grant() error {
	l.dropStream()
	seconds := int64((l.ttl + time.Second - 1) / time.Second)
	return l.client.attempt(l.ctx, func(ctx context.Context) error {
		resp, err := l.client.lease.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: seconds})
		if err != nil {
			return err
		}
		l.id, l.granted = resp.ID, time.Duration(resp.TTL)*time.Second
		l.setRenewal()
		return nil
	})
}

// renew keeps the lease alive for another TTL and returns its keys. It fails with ErrLeaseNotFound
// if etcd has dropped the lease.
func (l *lease) renew() (keys []string, err error) {
	if err := l.client.attempt(l.ctx, l.keepAlive); err != nil {
		return nil, err
	}
	var resp *pb.LeaseTimeToLiveResponse
	err = l.client.attempt(l.ctx, func(ctx context.Context) (err error) {
		resp, err = l.client.lease.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: l.id, Keys: true})
		if err == nil && resp.TTL < 0 { // 0 is the last second
			err = rpctypes.ErrLeaseNotFound
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, key := range resp.Keys {
		keys = append(keys, string(key))
	}
	l.setRenewal()
	return keys, nil
}

// setRenewal schedules the next renewal so that three fit into the TTL.
func (l *lease) setRenewal() { l.renewAt = time.Now().Add(upkeep.Renewal(l.granted)) }

func (l *lease) keepAlive(ctx context.Context) error {
	var streamCtx context.Context
	if l.stream == nil {
		streamCtx, l.cancel = context.WithCancel(clientv3.WithRequireLeader(l.ctx))
	}
	// The stream outlives ctx, so the end of ctx must cancel it explicitly.
	stop := context.AfterFunc(ctx, l.cancel)
	resp, err := l.roundTrip(streamCtx)
	if !stop() || err != nil {
		l.dropStream()
	}
	if err == nil && resp.TTL <= 0 {
		err = rpctypes.ErrLeaseNotFound
	}
	return err
}

func (l *lease) roundTrip(streamCtx context.Context) (resp *pb.LeaseKeepAliveResponse, err error) {
	if l.stream == nil {
		if l.stream, err = l.client.lease.LeaseKeepAlive(streamCtx); err != nil {
			l.stream = nil
			return nil, err
		}
	}
	// An error of Send only means that the stream is over; Recv returns the reason.
	_ = l.stream.Send(&pb.LeaseKeepAliveRequest{ID: l.id})
	return l.stream.Recv()
}

func (l *lease) dropStream() {
	if l.cancel != nil {
		l.cancel()
	}
	l.stream, l.cancel = nil, nil
}

// revoke revokes the lease, which deletes its keys.
func (l *lease) revoke() error {
	if l.id == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), revokeTimeout)
	defer cancel()
	err := l.client.retry(ctx, func(ctx context.Context) error {
		_, err := l.client.lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: l.id})
		return err
	})
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("withdraw instances (they expire within %v): %w", l.granted, err)
	}
	return nil
}
