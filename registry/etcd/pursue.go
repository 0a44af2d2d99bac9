package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// reflection is a copy of some keys of etcd: of the instances of a service, or of one document.
type reflection interface {
	// list reads all of it and returns the revision at which etcd had it.
	list(ctx context.Context) (revision int64, err error)
	// apply takes over what changed since.
	apply(events []*mvccpb.Event)
	// failed notes why it is not current any more; fatal says that trying again cannot mend it.
	failed(err error, fatal bool)
}

// pursue lists the keys from key to end and watches from the revision after the list's, until ctx is done.
// Whatever ends the watch (a lost connection, a compaction, a new leader) makes it list again: so it sees
// all that happened meanwhile, even on a server that came back with less than it had.
func (r *Registry) pursue(ctx context.Context, to reflection, key, end string) {
	var delay upkeep.Delay
	for first := true; ctx.Err() == nil; r.client.pause(ctx, &delay) {
		revision, err := to.list(ctx)
		if err != nil {
			// Later on, permission may come back: then it is trouble like any other.
			to.failed(err, first && hopeless(err))
			continue
		}
		first = false
		began, err := r.stream(ctx, to, key, end, revision+1)
		if !began {
			to.failed(err, false)
			continue
		}
		// Most streams end because one server of several went away. The next list tells whether it
		// is more than that.
		delay = upkeep.Delay{}
		r.log.Debug("the registry's watch ended; listing again", "key", key, "error", err)
	}
}

// stream applies what changes from a revision on, until the stream ends. It returns whether etcd had
// begun to watch, and why it ended.
func (r *Registry) stream(ctx context.Context, to reflection, key, end string, revision int64) (began bool, err error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	stream, err := r.client.watch.Watch(ctx, anySize)
	if err != nil {
		return false, err
	}
	// An error of Send only says that the stream is over; Recv has the reason.
	_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(key), RangeEnd: []byte(end), StartRevision: revision,
	}}})
	for {
		resp, err := stream.Recv()
		switch {
		case err != nil:
			return began, fmt.Errorf("etcd at %s: %w", r.client.endpoints, rpctypes.Error(err))
		case resp.CompactRevision != 0:
			return began, fmt.Errorf("etcd at %s: %w", r.client.endpoints, rpctypes.ErrCompacted)
		case resp.Canceled:
			return began, fmt.Errorf("etcd at %s ended the watch: %s", r.client.endpoints, resp.CancelReason)
		}
		began = began || resp.Created
		to.apply(resp.Events)
	}
}
