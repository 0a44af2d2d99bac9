package anser

import (
	"context"
	"time"

	"github.com/anser-rpc/anser/internal/lastknown"
	"github.com/anser-rpc/anser/registry"
)

// snapshotAfter is how long a client that starts waits for its registry before it looks at the
// disk.
const snapshotAfter = 500 * time.Millisecond

// follow watches the registry, keeps the snapshot, and falls back to it at the start.
func (c *Client) follow(src source, snap *lastknown.File) {
	if c.routerContext != nil {
		c.routerContext.await()
	}
	fallback := time.AfterFunc(snapshotAfter, func() { c.useSnapshot(snap) })
	defer fallback.Stop()
	warned, first := false, true
	update := func(list []registry.Instance) {
		if first && len(list) == 0 {
			c.holdBackEmpty(snap)
		}
		first = false
		// An empty list is nothing to start from, nor is one that is held back.
		if holds := c.cluster.Update(list, time.Time{}); holds || len(list) == 0 {
			return
		}
		if err := snap.SaveList(list); err != nil && !warned {
			warned = true
			c.o.log.Warn("the list of instances is not kept on disk", "err", err)
		}
	}
	trouble := func(err error) {
		c.cluster.Report(err)
		c.useSnapshot(snap)
	}
	for {
		err := src.watch(c.ctx, update, trouble)
		if c.ctx.Err() != nil {
			return
		}
		trouble(err)
		c.sleep(c.ctx, time.Second)
	}
}

// fix gives the cluster a list that never changes; if the client follows rules, once they have
// arrived.
func (c *Client) fix(list []registry.Instance) {
	if c.routerContext == nil {
		c.cluster.Update(list, time.Time{})
		return
	}
	select {
	case <-c.routerContext.ready:
		c.cluster.Update(list, time.Time{})
	default:
		c.wg.Go(func() { c.routerContext.await(); c.cluster.Update(list, time.Time{}) })
	}
}

// useSnapshot gives the cluster the saved list if the registry has not given it one.
func (c *Client) useSnapshot(snap *lastknown.File) {
	if !snap.Enabled() || c.cluster.View() != nil || c.ctx.Err() != nil {
		return
	}
	list, saved, err := snap.LoadList()
	if err != nil {
		c.o.log.Debug("no snapshot to start from", "err", err)
		return
	}
	c.o.log.Warn("the registry has not answered: starting with the saved list of instances", "saved", saved, "instances", len(list))
	c.cluster.Update(list, saved)
}

// freshSnapshot is how old a snapshot may be that is held against an empty list.
const freshSnapshot = time.Hour

// holdBackEmpty gives the cluster the saved list before the registry's first one, which is empty,
// so that it is held back like any that lost all instances at once: a registry may have lost its
// data just before this client started.
func (c *Client) holdBackEmpty(snap *lastknown.File) {
	if !snap.Enabled() || c.cluster.View() != nil {
		return
	}
	if list, saved, err := snap.LoadList(); err == nil && time.Since(saved) < freshSnapshot {
		c.cluster.Update(list, saved)
	}
}

// sleep waits for d or until ctx is done.
func (c *Client) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
