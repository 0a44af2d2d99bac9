package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// announcer keeps records in etcd. Callers set the wanted records; one goroutine makes etcd match
// them. Only that goroutine talks to etcd, always in the same order: get a lease or keep it alive,
// compare its keys with the wanted ones, write the differences. A lost lease, a deleted key and a
// write with an unknown outcome are then the same case: something differs, so it is written again.
type announcer struct {
	client *client
	log    *slog.Logger
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	ledger *upkeep.Ledger[string, string] // records by etcd key
	lease  lease                          // owned by the goroutine in run, and after it by close
	// revisions holds by key the revision of its last write when etcd last answered, 0 if there
	// was no such key. It is owned by the goroutine in run.
	revisions map[string]int64
}

// write is a record to be written; "" means that the key is deleted.
type write = upkeep.Wish[string, string]

func newAnnouncer(ctx context.Context, c *client, ttl time.Duration, log *slog.Logger) *announcer {
	ctx, cancel := context.WithCancel(ctx)
	a := &announcer{
		client: c, log: log, ctx: ctx, cancel: cancel,
		lease: lease{client: c, ctx: ctx, ttl: ttl}, revisions: make(map[string]int64),
	}
	a.ledger = upkeep.NewLedger[string, string](upkeep.Terms[string]{
		Run: a.run, Hopeless: hopeless, Ended: context.Context.Err, Outage: "the lease runs out", Log: log,
		Attrs: func(key string) []any { return []any{"key", key} },
	})
	return a
}

// close stops the goroutine and withdraws all records at once by revoking the lease.
func (a *announcer) close() error {
	a.ledger.Close()
	a.cancel()
	a.ledger.Leave()
	return a.lease.revoke()
}

// run makes etcd match the wanted records until the announcer is closed.
func (a *announcer) run() {
	defer a.lease.dropStream()
	var delay upkeep.Delay
	for {
		err := a.sync()
		if a.ctx.Err() != nil {
			return
		}
		a.ledger.Note(err)
		if err != nil {
			// New wishes wait, too: they would fail for the same reason.
			a.client.pause(a.ctx, &delay)
			continue
		}
		delay = upkeep.Delay{}
		select {
		case <-a.ctx.Done():
		case <-a.ledger.Kick():
		case <-time.After(time.Until(a.lease.renewAt)):
		}
	}
}

// sync does one round: it renews the lease, then writes what differs, many records in one
// transaction. The lease is also renewed between transactions: a record whose key another process
// keeps changing takes more than one.
func (a *announcer) sync() error {
	for {
		err := a.syncLease()
		if err == nil {
			batch := a.nextBatch()
			if len(batch) == 0 {
				return nil
			}
			err = a.writeBatch(batch)
		}
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			a.log.Warn("the registry dropped the lease; registering again", "lease", fmt.Sprintf("%x", a.lease.id))
			a.lease.id = 0
		case err != nil:
			return err
		}
	}
}

func (a *announcer) syncLease() error {
	if a.lease.id == 0 {
		if err := a.lease.grant(); err != nil {
			return err
		}
		clear(a.revisions) // the keys went with the lease
		a.ledger.MarkAll()
		return nil
	}
	if time.Now().Before(a.lease.renewAt) {
		return nil
	}
	keys, err := a.lease.renew()
	if err != nil {
		return err
	}
	a.compare(keys)
	return nil
}

// compare marks records that are missing on the lease, and keys there that are not wanted: the
// latter come from a write that was abandoned and succeeded after all.
func (a *announcer) compare(keys []string) {
	differs := make(map[string]bool)
	for _, key := range keys {
		differs[key] = true
	}
	for w := range a.ledger.Kept() {
		differs[w.Key] = !differs[w.Key]
	}
	for key, differs := range differs {
		if differs {
			a.ledger.Mark(key)
		}
	}
}
