package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/registry"
)

// attemptTimeout bounds one request.
const attemptTimeout = 5 * time.Second

// writer writes records in a session of its own, which resumes as long as ZooKeeper allows it. It
// implements announce.Store; it is used by the announcer's goroutine, and after that by close.
type writer struct {
	*config
	hurry   func() // ends the announcer's pause
	session *session
	logged  bool // the session is authenticated
	owner
	ends sync.WaitGroup // closing of former sessions
}

// owner identifies the nodes of this writer.
type owner struct {
	id     int64   // the session
	former []int64 // abandoned sessions, which may live for a while
}

// Begin implements announce.Store.
func (w *writer) Begin(ctx context.Context) (fresh bool, err error) {
	if w.session != nil && w.session.hopeless() {
		w.log.Warn("zookeeper does not restore the session; beginning another one", "session", fmt.Sprintf("%x", w.id))
		old := w.session
		w.ends.Go(func() { old.close() })
		w.former = append(w.former, w.id)
		w.session, w.logged = nil, false
	}
	if w.session == nil {
		if w.session, err = openSession(w.config, true, func(zk.Event) { w.hurry() }); err != nil {
			return false, err
		}
	}
	if err := w.await(ctx); err != nil {
		return false, err
	}
	id := w.session.conn.SessionID()
	if w.user != "" && !w.logged {
		// The library repeats it on each connection from now on.
		err := w.do(ctx, func(_ context.Context, c *zk.Conn) error { return c.AddAuth("digest", []byte(w.user+":"+w.password)) })
		if err != nil {
			return false, w.explain("authentication", err)
		}
		w.logged = true
	}
	fresh = w.id != 0 && w.id != id
	if fresh {
		w.log.Warn("zookeeper has ended the session; registering again", "session", fmt.Sprintf("%x", w.id))
	}
	w.id = id
	return fresh, nil
}

// await waits a moment for a connection, or for the reason why there is none.
func (w *writer) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for {
		connected, changed, reason := w.session.state()
		switch {
		case connected:
			return nil
		case reason != nil:
			return reason
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("zookeeper at %s: no connection within %v", strings.Join(w.endpoints, ","), dialTimeout)
		}
	}
}

// do calls f with a context that ends with the attempt. f runs on after that, but must not change
// anything then: the next attempt may have written newer data.
func (w *writer) do(ctx context.Context, f func(context.Context, *zk.Conn) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, attemptTimeout, fmt.Errorf("no answer within %v", attemptTimeout))
	defer cancel()
	return w.session.do(limited, func(c *zk.Conn) error { return f(limited, c) })
}

// Renew implements announce.Store. The library keeps the session alive; this checks whether
// another process has deleted the node or taken it over.
func (w *writer) Renew(ctx context.Context, key string, _ *registry.Instance) (ok bool, err error) {
	answer, id := make(chan bool, 1), w.id
	err = w.do(ctx, func(_ context.Context, c *zk.Conn) error {
		exists, stat, err := c.Exists(key)
		answer <- exists && err == nil && stat.EphemeralOwner == id
		return err
	})
	if err != nil {
		return false, w.explain(key, err)
	}
	return <-answer, nil
}

// Write implements announce.Store.
func (w *writer) Write(ctx context.Context, key string, in *registry.Instance, force bool) (taken bool, err error) {
	me := w.owner // Begin may change it while an abandoned request is in flight
	write := me.remove
	if in != nil {
		data, err := w.encode(*in)
		if err != nil {
			return false, err
		}
		write = func(ctx context.Context, c *zk.Conn, key string) (bool, error) {
			return me.put(ctx, c, key, data, w.acl, force)
		}
	}
	answer := make(chan bool, 1)
	err = w.do(ctx, func(ctx context.Context, c *zk.Conn) error {
		taken, err := false, errConflict
		for errors.Is(err, errConflict) && ctx.Err() == nil {
			taken, err = write(ctx, c, key)
		}
		answer <- taken
		return err
	})
	if err != nil {
		return false, w.explain(key, err)
	}
	return <-answer, nil
}

// errConflict means that a node has changed between a read and a write based on it.
var errConflict = errors.New("the node has changed meanwhile")

// put writes the record of this session. If force is set, it replaces another session's node,
// atomically, so that no reader sees it missing.
func (o owner) put(ctx context.Context, c *zk.Conn, key string, data []byte, acl []zk.ACL, force bool) (taken bool, err error) {
	_, err = c.Create(key, data, zk.FlagEphemeral, acl)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		if err := makeParents(c, key, acl); err != nil {
			return false, err
		}
		return false, errConflict
	case !errors.Is(err, zk.ErrNodeExists):
		return false, err
	}
	parent, epoch, stat, err := look(ctx, c, key)
	switch {
	case err != nil:
		return false, err
	case stat == nil:
		return false, errConflict
	case stat.EphemeralOwner == o.id:
		return false, multi(c, &zk.CheckVersionRequest{Path: parent, Version: epoch},
			&zk.SetDataRequest{Path: key, Data: data, Version: stat.Version})
	case !force && !slices.Contains(o.former, stat.EphemeralOwner):
		return true, nil
	}
	return false, multi(c, &zk.SetDataRequest{Path: parent, Version: epoch},
		&zk.DeleteRequest{Path: key, Version: stat.Version},
		&zk.CreateRequest{Path: key, Data: data, Acl: acl, Flags: zk.FlagEphemeral})
}

// remove deletes the node if it belongs to this session.
func (o owner) remove(ctx context.Context, c *zk.Conn, key string) (taken bool, err error) {
	parent, epoch, stat, err := look(ctx, c, key)
	if err != nil || stat == nil {
		return false, err
	}
	if stat.EphemeralOwner != o.id && !slices.Contains(o.former, stat.EphemeralOwner) {
		return true, nil
	}
	return false, multi(c, &zk.CheckVersionRequest{Path: parent, Version: epoch},
		&zk.DeleteRequest{Path: key, Version: stat.Version})
}

// look returns the state of a node, nil if it does not exist, and of its parent at that time. A
// node that was taken over starts again at version 0, so its version does not identify its owner:
// the version of the parent's data, which every takeover increments, does. If the attempt has
// ended meanwhile, look fails: the versions may be those of a later attempt's write, which a change
// with these versions would replace.
func look(ctx context.Context, c *zk.Conn, key string) (parent string, epoch int32, stat *zk.Stat, err error) {
	parent = path.Dir(key)
	there, parentStat, err := c.Exists(parent)
	if err != nil || !there {
		return parent, 0, nil, err
	}
	there, stat, err = c.Exists(key)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil || !there {
		return parent, parentStat.Version, nil, err
	}
	return parent, parentStat.Version, stat, nil
}

// multi makes all changes or none; errConflict means that a node was not in the expected state.
func multi(c *zk.Conn, ops ...any) error {
	answers, err := c.Multi(ops...)
	all := []error{err}
	for _, a := range answers {
		all = append(all, a.Error)
	}
	for _, e := range all {
		if errors.Is(e, zk.ErrBadVersion) || errors.Is(e, zk.ErrNoNode) || errors.Is(e, zk.ErrNodeExists) {
			return errConflict
		}
	}
	for _, e := range all {
		if hopeless(e) {
			return e
		}
	}
	return errors.Join(all...)
}

// makeParents creates the missing nodes above a path.
func makeParents(c *zk.Conn, node string, acl []zk.ACL) error {
	parent := path.Dir(node)
	if parent == "/" {
		return nil
	}
	if there, _, err := c.Exists(parent); err != nil || there {
		return err
	}
	if err := makeParents(c, parent, acl); err != nil {
		return err
	}
	if _, err := c.Create(parent, nil, 0, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	return nil
}

// close ends the session, and with it the announced instances, if there are any.
func (w *writer) close(announced bool) error {
	if w.session == nil {
		return nil
	}
	defer w.ends.Wait()
	if !w.session.close() && announced {
		return fmt.Errorf("withdraw instances (they expire within %v): zookeeper at %s has not confirmed the end of the session",
			w.ttl, strings.Join(w.endpoints, ","))
	}
	return nil
}
