package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// readers is the number of concurrent reads of nodes.
const readers = 32

// Watch implements registry.Resolver. It reads the service and sets watches, and after each event
// reads the changed part and sets its watch again: every change is either part of a read or fires
// a watch. After the connection was lost it reads everything again, over the next one. A record
// that cannot be decoded is reported as trouble and left out.
func (r *Registry) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	w := &watch{Registry: r, service: service, path: r.servicePath(service), update: update, trouble: trouble}
	if err := r.follow(ctx, w.path, w.read, w.problem); err != nil {
		return fmt.Errorf("watch service %q: %w", service, err)
	}
	return nil
}

// watch is the state of one call of Watch; owned by its goroutine.
type watch struct {
	*Registry
	service, path string
	update        func([]registry.Instance)
	trouble       func(error)

	nodes   map[string]node     // by name
	last    []registry.Instance // last argument of update
	current bool                // update was called since the last trouble
}

// node is the content of a node of a service.
type node struct {
	instance registry.Instance
	there    bool  // false: it was deleted between the list and its read
	problem  error // the record cannot be decoded
}

func (w *watch) problem(err error) {
	w.current = false
	if w.trouble != nil {
		w.trouble(err)
	}
}

// read reads what has changed, or everything over a fresh connection, and reports the result.
func (w *watch) read(ctx context.Context, c *connection, changed map[string]bool, fresh bool) error {
	if fresh {
		w.nodes = make(map[string]node)
	}
	nodes, known := maps.Clone(w.nodes), w.nodes
	type outcome struct {
		nodes map[string]node
		read  []node
	}
	answer := make(chan outcome, 1)
	err := c.do(ctx, func(conn *zk.Conn) error {
		names := slices.Collect(maps.Keys(known))
		if fresh || changed[w.path] {
			var err error
			if names, err = c.children(conn, w.path); err != nil {
				return err
			}
			if w.rpcx {
				names = slices.DeleteFunc(names, func(name string) bool { return !rpcxlayout.IsServer(name) })
			}
		}
		listed := make(map[string]bool, len(names))
		var look []string
		for _, name := range names {
			listed[name] = true
			if n, ok := known[name]; !ok || !n.there || changed[w.path+"/"+name] {
				look = append(look, name)
			}
		}
		maps.DeleteFunc(nodes, func(name string, _ node) bool { return !listed[name] })
		read, err := w.look(ctx, c, conn, look)
		if err != nil {
			return err
		}
		for i, name := range look {
			nodes[name] = read[i]
		}
		answer <- outcome{nodes, read}
		return nil
	})
	if err != nil {
		return w.explain(w.path, err)
	}
	out := <-answer
	w.nodes = out.nodes
	for _, n := range out.read {
		if n.problem != nil {
			w.problem(n.problem)
		}
	}
	w.tell()
	return nil
}

// look reads nodes, several at a time.
func (w *watch) look(ctx context.Context, c *connection, conn *zk.Conn, names []string) ([]node, error) {
	nodes, errs := make([]node, len(names)), make([]error, len(names))
	var wg sync.WaitGroup
	for worker := range min(readers, len(names)) {
		wg.Go(func() {
			for i := worker; i < len(names) && ctx.Err() == nil; i += readers {
				data, _, err := c.get(conn, w.path+"/"+names[i])
				switch {
				case errors.Is(err, zk.ErrNoNode): // the watch on the list fires when it comes back
				case err != nil:
					errs[i] = err
					return
				default:
					nodes[i].there = true
					nodes[i].instance, nodes[i].problem = w.decode(w.service, names[i], data)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return nodes, ctx.Err()
}

// tell calls update if there is something to report.
func (w *watch) tell() {
	list := make([]registry.Instance, 0, len(w.nodes))
	for _, n := range w.nodes {
		if n.there && n.problem == nil {
			list = append(list, n.instance)
		}
	}
	if w.rpcx {
		list = rpcxlayout.Once(list)
	} else {
		registry.Sort(list)
	}
	if !w.current || !registry.Equal(list, w.last) {
		w.update(list)
		w.current, w.last = true, list
	}
}

// follow calls read whenever a node at or below path may have changed, and problem with errors in
// between, until ctx is done or a retry is pointless.
func (r *Registry) follow(ctx context.Context, path string,
	read func(ctx context.Context, c *connection, changed map[string]bool, fresh bool) error, problem func(error),
) error {
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	var delay upkeep.Delay
	for first := true; ; {
		c, err := r.reader.connection(ctx, problem)
		if err != nil {
			return err
		}
		ever := false
		err = c.follow(ctx, path, func(ctx context.Context, c *connection, changed map[string]bool, fresh bool) error {
			err := read(ctx, c, changed, fresh)
			ever = ever || err == nil
			return err
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case disconnected(err):
		case first && !ever && hopeless(err):
			// Later on, the permission may be restored: then the error is trouble like any other.
			return err
		default:
			problem(err)
		}
		if ever {
			first, delay = false, upkeep.Delay{}
		}
		delay.Wait(ctx, nil)
	}
}

// follow is like follow of Registry, until the connection is lost or read fails.
func (c *connection) follow(ctx context.Context, path string,
	read func(ctx context.Context, c *connection, changed map[string]bool, fresh bool) error,
) error {
	s := c.subscribe(path)
	defer s.cancel()
	for fresh := true; ; fresh = false {
		if err := read(ctx, c, s.take(), fresh); err != nil {
			return err
		}
		select {
		case <-s.wake:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Services implements registry.Lister. It waits for ZooKeeper until ctx is done.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	names, err := ask(ctx, r, func(c *connection, conn *zk.Conn) ([]string, error) {
		nodes, _, err := conn.Children(r.servicesPath())
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		var names []string
		for _, node := range nodes {
			_, stat, err := conn.Exists(r.servicesPath() + "/" + node)
			if err != nil {
				return nil, err
			}
			name, err := url.PathUnescape(node)
			if err == nil && stat.NumChildren > 0 && registry.CheckService(name) == nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", r.explain(r.servicesPath(), err))
	}
	return names, nil
}

// ask makes idempotent requests until they succeed, fail permanently, or ctx is done.
func ask[T any](ctx context.Context, r *Registry, request func(c *connection, conn *zk.Conn) (T, error)) (answer T, err error) {
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	var delay upkeep.Delay
	var reason error
	for {
		c, err := r.reader.connection(ctx, func(err error) { reason = err })
		if err != nil {
			return answer, upkeep.Because(err, reason)
		}
		answers := make(chan T, 1)
		err = c.do(ctx, func(conn *zk.Conn) error {
			if _, err := conn.Sync("/"); err != nil { // include all earlier writes of other sessions
				return err
			}
			a, err := request(c, conn)
			answers <- a
			return err
		})
		switch {
		case err == nil:
			return <-answers, nil
		case ctx.Err() != nil:
			return answer, upkeep.Because(context.Cause(ctx), reason)
		case !disconnected(err):
			return answer, err
		}
		reason = errors.New("zookeeper at " + strings.Join(r.endpoints, ",") + ": " + err.Error())
		delay.Wait(ctx, nil)
	}
}
