package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// reader holds the connection for all reads. It does not resume a lost session: the library would
// set the watches again from a point that may be later than the last read, and fail silently.
// Everything is read again over the next connection instead.
type reader struct {
	*config
	ctx context.Context // ends with Close
	wg  sync.WaitGroup  // run, and the goroutines that close lost sessions

	mu      sync.Mutex // guards the fields below
	started bool
	closed  bool
	current *connection   // nil means none
	reason  error         // why there is none, if known
	changed chan struct{} // closed and replaced by each change
}

func newReader(ctx context.Context, cfg *config) *reader {
	return &reader{config: cfg, ctx: ctx, changed: make(chan struct{})}
}

// connection returns the current connection; the first caller starts it. While there is none it
// calls trouble with the reasons, each one once.
func (r *reader) connection(ctx context.Context, trouble func(error)) (*connection, error) {
	told := ""
	for {
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			return nil, registry.ErrClosed
		}
		if !r.started {
			r.started = true
			r.wg.Go(r.run)
		}
		current, reason, changed := r.current, r.reason, r.changed
		r.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if current != nil {
			return current, nil
		}
		if reason != nil && reason.Error() != told {
			trouble(reason)
			told = reason.Error()
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (r *reader) set(current *connection, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current, r.reason = current, reason
	close(r.changed)
	r.changed = make(chan struct{})
}

// run maintains a connection until the registry is closed.
func (r *reader) run() {
	for r.ctx.Err() == nil {
		r.once()
		new(upkeep.Delay).Wait(r.ctx, nil) // a server may accept sessions and end them at once
	}
}

// once opens a session, offers it while it is connected, and closes it when the connection is
// lost.
func (r *reader) once() {
	c := &connection{config: r.config, armed: make(map[watchKey]*arming), subs: make(map[string]map[*subscription]bool)}
	var err error
	if c.session, err = openSession(r.config, false, c.event); err != nil {
		r.set(nil, err)
		<-r.ctx.Done() // the library rejects the endpoints
		return
	}
	defer r.wg.Go(func() { c.session.close() })
	c.ctx, c.cancel = context.WithCancelCause(r.ctx)
	defer c.cancel(zk.ErrConnectionClosed)
	for had := false; ; {
		connected, changed, reason := c.session.state()
		switch {
		case connected && !had:
			had = true
			err := c.begin()
			if err == nil {
				r.set(c, nil)
			} else if !disconnected(err) {
				r.set(nil, r.explain("the start of the session", err))
				return
			}
		case !connected && had:
			// Most connections end because one of several servers went away. The next one shows
			// whether there is a lasting problem.
			r.set(nil, nil)
			return
		case !connected && reason != nil:
			r.set(nil, reason)
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			r.set(nil, nil)
			return
		}
	}
}

func (r *reader) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wg.Wait()
}

// connection is a connected session. It is abandoned when its connection is lost.
type connection struct {
	*config
	session *session
	ctx     context.Context // ends when the connection is lost
	cancel  context.CancelCauseFunc

	mu    sync.Mutex // guards the fields below
	armed map[watchKey]*arming
	subs  map[string]map[*subscription]bool // by path
}

// begin prepares the session for requests. It waits until the server has all earlier writes of
// other sessions: a reader that comes from another server would otherwise see an older state.
func (c *connection) begin() error {
	ctx, cancel := context.WithTimeoutCause(c.ctx, attemptTimeout, fmt.Errorf("no answer within %v", attemptTimeout))
	defer cancel()
	return c.session.do(ctx, func(conn *zk.Conn) error {
		if c.user != "" {
			if err := conn.AddAuth("digest", []byte(c.user+":"+c.password)); err != nil {
				return err
			}
		}
		_, err := conn.Sync("/")
		return err
	})
}

// do makes requests until ctx is done or the connection is lost.
func (c *connection) do(ctx context.Context, f func(*zk.Conn) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
	return c.session.do(ctx, f)
}

// subscription collects changed paths, at or directly below one path.
type subscription struct {
	conn *connection
	path string
	wake chan struct{} // holds a token if something has changed

	mu      sync.Mutex // guards changed
	changed map[string]bool
}

func (c *connection) subscribe(path string) *subscription {
	s := &subscription{conn: c, path: path, wake: make(chan struct{}, 1), changed: make(map[string]bool)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs[path] == nil {
		c.subs[path] = make(map[*subscription]bool)
	}
	c.subs[path][s] = true
	return s
}

func (s *subscription) cancel() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	delete(s.conn.subs[s.path], s)
	if len(s.conn.subs[s.path]) == 0 {
		delete(s.conn.subs, s.path)
	}
}

// take returns the paths that have changed since the last call.
func (s *subscription) take() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.changed
	s.changed = make(map[string]bool)
	return changed
}

// A watch in ZooKeeper fires once and is then removed. The library keeps a channel for each watch
// it was asked for, so asking again for one that is still set would fill the memory of a process
// that lists a quiet service once per second. connection therefore tracks which watches are set.

type watchKind int

const (
	existence watchKind = iota
	content
	children
)

type watchKey struct {
	kind watchKind
	path string
}

// arming is a watch that is set, or being set by requests in flight.
type arming struct {
	set    bool
	asking int
	fired  bool // while requests were in flight: it is unknown whether before or after them
}

// fires maps an event type to the watches that it removes.
var fires = map[zk.EventType][]watchKind{
	zk.EventNodeCreated:         {existence},
	zk.EventNodeDataChanged:     {existence, content},
	zk.EventNodeChildrenChanged: {children},
	zk.EventNodeDeleted:         {existence, content, children},
}

func (c *connection) event(ev zk.Event) {
	if ev.Type == zk.EventSession {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range fires[ev.Type] {
		key := watchKey{kind, ev.Path}
		switch a := c.armed[key]; {
		case a == nil:
		case a.asking == 0:
			delete(c.armed, key)
		default:
			a.set, a.fired = false, true
		}
	}
	for _, p := range []string{ev.Path, path.Dir(ev.Path)} {
		for s := range c.subs[p] {
			s.mu.Lock()
			s.changed[ev.Path] = true
			s.mu.Unlock()
			select {
			case s.wake <- struct{}{}:
			default:
			}
		}
	}
}

// watched calls plain if the watch is already set, otherwise arm, which sets it and reports
// whether it has.
func (c *connection) watched(kind watchKind, path string, plain func() error, arm func() (set bool, err error)) error {
	key := watchKey{kind, path}
	c.mu.Lock()
	a := c.armed[key]
	if a != nil && a.set {
		c.mu.Unlock()
		return plain()
	}
	if a == nil {
		a = new(arming)
		c.armed[key] = a
	}
	a.asking++
	c.mu.Unlock()
	set, err := arm()
	c.mu.Lock()
	defer c.mu.Unlock()
	a.asking--
	a.set = a.set || set && !a.fired
	if a.asking == 0 {
		a.fired = false
		if !a.set {
			delete(c.armed, key)
		}
	}
	return err
}

// children returns the names of the nodes below a path, none if it does not exist, and watches
// them.
func (c *connection) children(conn *zk.Conn, path string) (names []string, err error) {
	err = c.orAbsent(conn, path, func() error {
		return c.watched(children, path, func() (err error) {
			names, _, err = conn.Children(path)
			return err
		}, func() (bool, error) {
			var err error
			names, _, _, err = conn.ChildrenW(path)
			return err == nil, err
		})
	})
	return names, err
}

// get returns the data and the state of a node, and watches them. It fails if the node does not
// exist.
func (c *connection) get(conn *zk.Conn, path string) (data []byte, stat *zk.Stat, err error) {
	err = c.watched(content, path, func() (err error) {
		data, stat, err = conn.Get(path)
		return err
	}, func() (bool, error) {
		var err error
		data, stat, _, err = conn.GetW(path)
		return err == nil, err
	})
	return data, stat, err
}

// orAbsent calls read; if the node does not exist, it makes sure that its creation fires a watch.
func (c *connection) orAbsent(conn *zk.Conn, path string, read func() error) error {
	for {
		err := read()
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		there := false
		err = c.watched(existence, path, func() error { return nil }, func() (bool, error) {
			var err error
			there, _, _, err = conn.ExistsW(path)
			return err == nil && !there, err
		})
		if err != nil || !there {
			return err
		}
	}
}
