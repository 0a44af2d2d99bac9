package anser

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// snapshot is the file that holds the last list of instances a registry gave. It serves a client that
// starts while its registry cannot be reached.
type snapshot struct {
	path   string // "" when there is none
	target string
}

type snapshotFile struct {
	Target    string              `json:"target"`
	Saved     time.Time           `json:"saved"`
	Instances []registry.Instance `json:"instances"`
}

// snapshotAfter is how long a client that starts waits for its registry before it looks at the disk.
const snapshotAfter = 500 * time.Millisecond

func newSnapshot(dir, target string) (*snapshot, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return &snapshot{}, fmt.Errorf("no snapshots of instance lists: %w: use anser.SnapshotDir", err)
		}
		dir = filepath.Join(cache, "anser")
	}
	sum := sha256.Sum256([]byte(target))
	return &snapshot{path: filepath.Join(dir, hex.EncodeToString(sum[:8])+".json"), target: target}, nil
}

// save replaces the file in one step, so that a crash leaves the old one or the new one.
func (s *snapshot) save(list []registry.Instance) error {
	if s.path == "" {
		return nil
	}
	data, err := json.MarshalIndent(snapshotFile{s.target, time.Now().UTC(), list}, "", "\t")
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return s.write(data)
}

// write replaces the content of the file.
func (s *snapshot) write(data []byte) error {
	if s.path == "" {
		return nil
	}
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	f, err := os.CreateTemp(dir, "snapshot-*")
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

// read returns what write wrote, or nil if there is nothing.
func (s *snapshot) read() ([]byte, error) {
	if s.path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load snapshot: %w", err)
	}
	return data, nil
}

// load returns the saved list; a file that is not there is an error like any other.
func (s *snapshot) load() ([]registry.Instance, time.Time, error) {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("load snapshot: %w", err)
	}
	var f snapshotFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, time.Time{}, fmt.Errorf("load snapshot %s: %w", s.path, err)
	}
	if f.Target != s.target {
		return nil, time.Time{}, fmt.Errorf("load snapshot %s: it belongs to %s", s.path, f.Target)
	}
	return f.Instances, f.Saved, nil
}

// follow watches the registry, keeps the snapshot, and falls back to it at the start.
func (c *Client) follow(src source, snap *snapshot) {
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
		if holds := c.cluster.update(list, time.Time{}); holds || len(list) == 0 {
			return
		}
		if err := snap.save(list); err != nil && !warned {
			warned = true
			c.o.log.Warn("the list of instances is not kept on disk", "err", err)
		}
	}
	trouble := func(err error) {
		c.cluster.report(err)
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

// fix gives the cluster a list that never changes, once there are rules if there are to be any.
func (c *Client) fix(list []registry.Instance) {
	if c.routerContext == nil {
		c.cluster.update(list, time.Time{})
		return
	}
	select {
	case <-c.routerContext.ready:
		c.cluster.update(list, time.Time{})
	default:
		c.wg.Go(func() { c.routerContext.await(); c.cluster.update(list, time.Time{}) })
	}
}

// useSnapshot gives the cluster the saved list if the registry has not given it one.
func (c *Client) useSnapshot(snap *snapshot) {
	if snap.path == "" || c.cluster.view.Load() != nil || c.ctx.Err() != nil {
		return
	}
	list, saved, err := snap.load()
	if err != nil {
		c.o.log.Debug("no snapshot to start from", "err", err)
		return
	}
	c.o.log.Warn("the registry has not answered: starting with the saved list of instances", "saved", saved, "instances", len(list))
	c.cluster.update(list, saved)
}

// freshSnapshot is how old a snapshot may be that is held against an empty list.
const freshSnapshot = time.Hour

// holdBackEmpty gives the cluster the saved list before the registry's first one, which is empty, so that it is held back like
// any that lost all instances at once: a registry may have lost its data just before this client started.
func (c *Client) holdBackEmpty(snap *snapshot) {
	if snap.path == "" || c.cluster.view.Load() != nil {
		return
	}
	if list, saved, err := snap.load(); err == nil && time.Since(saved) < freshSnapshot {
		c.cluster.update(list, saved)
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
