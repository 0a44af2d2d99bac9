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
	// list reads all of the keys and returns the revision of that state.
	list(ctx context.Context) (revision int64, err error)
	// apply applies the changes since then.
	apply(events []*mvccpb.Event)
	// failed records why the copy is no longer current; fatal means that a retry is pointless.
	failed(err error, fatal bool)
}

// pursue lists the keys from key to end and watches from the revision after the list's, until ctx
// is done. Whatever ends the watch (a lost connection, a compaction, a new leader), it then lists
// again: so it sees the result of every change, even on a server that came back with less data.
func (r *Registry) pursue(ctx context.Context, to reflection, key, end string) {
	var delay upkeep.Delay
	for first := true; ctx.Err() == nil; r.client.pause(ctx, &delay) {
		revision, err := to.list(ctx)
		if err != nil {
			// Later on, the permission may be restored: then the error is trouble like any other.
			to.failed(err, first && hopeless(err))
			continue
		}
		first = false
		began, err := r.stream(ctx, to, key, end, revision+1)
		if !began {
			to.failed(err, false)
			continue
		}
		// Most streams end because one of several servers went away. The next list shows whether
		// there is a lasting problem.
		delay = upkeep.Delay{}
		r.log.Debug("the registry's watch ended; listing again", "key", key, "error", err)
	}
}

// stream applies the changes from a revision on, until the stream ends. It returns whether etcd
// had confirmed the watch, and why the stream ended.
func (r *Registry) stream(ctx context.Context, to reflection, key, end string, revision int64) (began bool, err error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	stream, err := r.client.watch.Watch(ctx, anySize)
	if err != nil {
		return false, err
	}
	// An error of Send only means that the stream is over; Recv returns the reason.
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
