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
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// readers is how many nodes are read at once.
const readers = 32

// Watch implements registry.Resolver. It reads the service with watches set, and after each event what that
// names, with the watch set again: a change is either in what is read or sets off the watch. After the
// connection was lost it reads all again, over the next one. A record that cannot be read is reported as
// trouble and left out.
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

// watch is one call of Watch, on whose goroutine it runs.
type watch struct {
	*Registry
	service, path string
	update        func([]registry.Instance)
	trouble       func(error)

	nodes   map[string]node     // by name
	last    []registry.Instance // what update got
	current bool                // update was called since the last trouble
}

// node is what a node of a service holds.
type node struct {
	instance registry.Instance
	there    bool  // false: it went away between the list and the look at it
	problem  error // the record cannot be read
}

func (w *watch) problem(err error) {
	w.current = false
	if w.trouble != nil {
		w.trouble(err)
	}
}

// read reads what has changed, or all over a fresh connection, and tells what came of it.
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

// look reads nodes, many at once.
func (w *watch) look(ctx context.Context, c *connection, conn *zk.Conn, names []string) ([]node, error) {
	nodes, errs := make([]node, len(names)), make([]error, len(names))
	var wg sync.WaitGroup
	for worker := range min(readers, len(names)) {
		wg.Go(func() {
			for i := worker; i < len(names) && ctx.Err() == nil; i += readers {
				data, _, err := c.get(conn, w.path+"/"+names[i])
				switch {
				case errors.Is(err, zk.ErrNoNode): // the watch on the list tells when it comes back
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

// tell calls update if that has something to say.
func (w *watch) tell() {
	list := make([]registry.Instance, 0, len(w.nodes))
	for _, n := range w.nodes {
		if n.there && n.problem == nil {
			list = append(list, n.instance)
		}
	}
	registry.Sort(list)
	if !w.current || !registry.Equal(list, w.last) {
		w.update(list)
		w.current, w.last = true, list
	}
}

// follow calls read whenever a node at or below path may have changed, and problem with what keeps it from
// that, until ctx is done or there is no use in trying again.
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
			// Later on, permission may come back: then it is trouble like any other.
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

// follow does what follow of Registry does, until the connection is lost or read fails.
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

// ask makes requests that may be made again, until they succeed, are hopeless, or ctx is done.
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
			if _, err := conn.Sync("/"); err != nil { // what was written elsewhere before now
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
