package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What one transaction holds at most, below etcd's own limits of 128 operations and 1.5 MiB.
const (
	maxBatch      = 100
	maxBatchBytes = 512 << 10
)

// write is one record as it is to be written.
type write struct {
	key     string
	want    string
	force   bool
	version int
}

// writeDirty writes all records that may differ, many in one transaction.
func (a *announcer) writeDirty() error {
	for {
		batch := a.nextBatch()
		if len(batch) == 0 {
			return nil
		}
		if err := a.writeBatch(batch); err != nil {
			return err
		}
	}
}

func (a *announcer) nextBatch() []write {
	a.mu.Lock()
	defer a.mu.Unlock()
	var batch []write
	size := 0
	for key := range a.dirty {
		r := a.records[key]
		if r == nil {
			delete(a.dirty, key)
			continue
		}
		if size += len(key) + len(r.want); len(batch) == maxBatch || len(batch) > 0 && size > maxBatchBytes {
			break
		}
		batch = append(batch, write{key, r.want, r.force, r.version})
	}
	return batch
}

// writeBatch writes the batch in one transaction. Where etcd refuses that, it finds out which of
// the records it does not take.
func (a *announcer) writeBatch(batch []write) error {
	ops := make([]clientv3.Op, len(batch))
	for i, w := range batch {
		ops[i] = w.op(clientv3.LeaseID(a.lease.id))
	}
	var resp *clientv3.TxnResponse
	err := a.client.attempt(a.ctx, func(ctx context.Context) (err error) {
		resp, err = a.client.kv.Txn(ctx).Then(ops...).Commit()
		return err
	})
	switch {
	case err == nil:
		a.settle(batch, resp)
		return nil
	case !hopeless(err):
		return err
	case len(batch) == 1:
		a.refuse(batch[0], err)
		return nil
	}
	half := len(batch) / 2
	if err := a.writeBatch(batch[:half]); err != nil {
		return err
	}
	return a.writeBatch(batch[half:])
}

// op returns what writes the record. Only a record that a caller has just registered takes a key
// that somebody else has.
func (w write) op(lease clientv3.LeaseID) clientv3.Op {
	put := clientv3.OpPut(w.key, w.want, clientv3.WithLease(lease))
	mine := []clientv3.Cmp{clientv3.Compare(clientv3.LeaseValue(w.key), "=", lease)}
	absent := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(w.key), "=", 0)}
	switch {
	case w.want == "":
		return clientv3.OpTxn(mine, []clientv3.Op{clientv3.OpDelete(w.key)}, nil)
	case w.force:
		return put
	}
	return clientv3.OpTxn(absent, []clientv3.Op{put}, []clientv3.Op{clientv3.OpTxn(mine, []clientv3.Op{put}, nil)})
}

// settle notes that etcd has the batch.
func (a *announcer) settle(batch []write, resp *clientv3.TxnResponse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, w := range batch {
		r := a.records[w.key]
		r.have = w.want
		r.finishLocked(w.version, nil)
		if r.version != w.version {
			continue // something else is wanted by now
		}
		if w.want != "" && !w.force && takenOver(resp.Responses[i]) {
			// To write it again whenever the key is free would bring the old record back in the
			// moment in which the new owner has lost its lease.
			a.log.Info("another process has taken an instance over", "key", w.key)
			r.want = ""
		}
		r.force = false
		delete(a.dirty, w.key)
		if r.want == "" {
			delete(a.records, w.key)
		}
	}
}

// takenOver reports whether a write that was not forced found the key in other hands.
func takenOver(resp *pb.ResponseOp) bool {
	absent := resp.GetResponseTxn()
	return !absent.Succeeded && !absent.Responses[0].GetResponseTxn().Succeeded
}

// refuse notes that etcd does not take a record. It is written again when the next renewal finds it
// missing.
func (a *announcer) refuse(w write, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.records[w.key]
	if len(r.waiters) == 0 {
		a.log.Warn("the registry refuses an instance that it had", "key", w.key, "error", err)
	}
	if r.version == w.version {
		delete(a.dirty, w.key)
	}
	a.refuseLocked(w.key, r, w.version, err)
}
