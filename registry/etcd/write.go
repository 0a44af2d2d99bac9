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

// nextBatch returns records that may differ, as many as one transaction may write.
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
		ops[i] = opOf(w, a.revisions[w.Key], clientv3.LeaseID(a.lease.id))
	}
	var resp *clientv3.TxnResponse
	err := a.client.attempt(a.ctx, func(ctx context.Context) (err error) {
		resp, err = a.client.kv.Txn(ctx).Then(ops...).Commit()
		return err
	})
	switch {
	case err == nil:
		for i, w := range batch {
			a.settle(w, resp.Responses[i].GetResponseTxn(), resp.Header.Revision)
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

// opOf returns the operation that writes the record if the last write of its key is that of the
// revision, 0 if there is no such key. Otherwise it changes nothing, and reads the revision and
// whether the key is on the lease.
//
// So a transaction changes nothing if it is executed after a newer one: etcd may still execute one
// whose attempt has timed out, as a server that was paused does. There is one exception: a key that
// is absent again looks as if it had never been written. A record that such a transaction brings
// back is on the lease of this process, whose next renewal finds that it is not wanted. After
// close, the lease is gone, and etcd refuses the transaction.
//
// Only a record that a caller has just registered takes a key from another process.
func opOf(w write, revision int64, lease clientv3.LeaseID) clientv3.Op {
	mine := clientv3.Compare(clientv3.LeaseValue(w.Key), "=", lease)
	unchanged := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(w.Key), "=", revision)}
	if revision != 0 && !w.Force {
		unchanged = append(unchanged, mine)
	}
	change := clientv3.OpPut(w.Key, w.Want, clientv3.WithLease(lease))
	if w.Want == "" {
		change = clientv3.OpDelete(w.Key)
	}
	// A read without the value, which may be large, does not return the lease.
	read := []clientv3.Op{clientv3.OpGet(w.Key, clientv3.WithKeysOnly())}
	look := clientv3.OpTxn([]clientv3.Cmp{mine}, read, read)
	return clientv3.OpTxn(unchanged, []clientv3.Op{change}, []clientv3.Op{look})
}

// settle evaluates the answer to the operation of opOf in a transaction with the given revision.
// If the key was not as expected, the record stays due, and the next transaction expects the key
// as it was now; unless there is nothing to remove, or another process keeps the key.
func (a *announcer) settle(w write, resp *pb.TxnResponse, revision int64) {
	if resp.Succeeded {
		if w.Want == "" {
			revision = 0
		}
		a.know(w.Key, revision)
		a.ledger.Settle(w, false)
		return
	}
	look, now := resp.Responses[0].GetResponseTxn(), int64(0)
	if kvs := look.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		now = kvs[0].ModRevision
	}
	foreign := now != 0 && !look.Succeeded
	if foreign && !w.Force || now == 0 && w.Want == "" {
		a.know(w.Key, 0)
		a.ledger.Settle(w, foreign && w.Want != "")
		return
	}
	a.know(w.Key, now)
}

// know stores the revision of the last write of a key, 0 if there is no such key.
func (a *announcer) know(key string, revision int64) {
	if revision == 0 {
		delete(a.revisions, key)
	} else {
		a.revisions[key] = revision
	}
}
