package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Limits of one transaction, below etcd's own of 128 operations and 1.5 MiB.
const (
	maxBatch      = 100
	maxBatchBytes = 512 << 10
)

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

func (a *announcer) nextBatch() (batch []write) {
	size := 0
	for w := range a.ledger.Due() {
		if size += len(w.Key) + len(w.Want); len(batch) == maxBatch || len(batch) > 0 && size > maxBatchBytes {
			break
		}
		batch = append(batch, w)
	}
	return batch
}

// writeBatch writes the batch in one transaction. If etcd rejects that, it writes the records one
// by one to find the rejected ones; they are written again when the next renewal finds them
// missing.
func (a *announcer) writeBatch(batch []write) error {
	ops := make([]clientv3.Op, len(batch))
	for i, w := range batch {
		ops[i] = opOf(w, clientv3.LeaseID(a.lease.id))
	}
	var resp *clientv3.TxnResponse
	err := a.client.attempt(a.ctx, func(ctx context.Context) (err error) {
		resp, err = a.client.kv.Txn(ctx).Then(ops...).Commit()
		return err
	})
	switch {
	case err == nil:
		for i, w := range batch {
			a.ledger.Settle(w, w.Want != "" && !w.Force && takenOver(resp.Responses[i]))
		}
		return nil
	case !hopeless(err):
		return err
	case len(batch) == 1:
		a.ledger.Refuse(batch[0], err)
		return nil
	}
	half := len(batch) / 2
	if err := a.writeBatch(batch[:half]); err != nil {
		return err
	}
	return a.writeBatch(batch[half:])
}

// opOf returns the operation that writes the record. Only a record that a caller has just
// registered takes a key from another process.
func opOf(w write, lease clientv3.LeaseID) clientv3.Op {
	put := clientv3.OpPut(w.Key, w.Want, clientv3.WithLease(lease))
	mine := []clientv3.Cmp{clientv3.Compare(clientv3.LeaseValue(w.Key), "=", lease)}
	absent := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(w.Key), "=", 0)}
	switch {
	case w.Want == "":
		return clientv3.OpTxn(mine, []clientv3.Op{clientv3.OpDelete(w.Key)}, nil)
	case w.Force:
		return put
	}
	return clientv3.OpTxn(absent, []clientv3.Op{put}, []clientv3.Op{clientv3.OpTxn(mine, []clientv3.Op{put}, nil)})
}

// takenOver reports whether a write that was not forced found that another process owns the key.
func takenOver(resp *pb.ResponseOp) bool {
	absent := resp.GetResponseTxn()
	return !absent.Succeeded && !absent.Responses[0].GetResponseTxn().Succeeded
}
