package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/internal/netns"
)

// world is the environment of a row: a folder, hosts and processes, which are removed after the
// row.
type world struct {
	o     options
	ctx   context.Context
	dir   string
	net   *netns.Network // nil: all processes are on this machine, at the loopback
	hosts map[string]netns.Host
	procs []*process
	undo  []func() error // by close, the last one first
}

// newWorld makes one. Where hosts can be made there are some, needed or not.
func newWorld(ctx context.Context, o options) (*world, error) {
	dir, err := os.MkdirTemp("", "anser-faults-")
	if err != nil {
		return nil, err
	}
	w := &world{o: o, ctx: ctx, dir: dir, hosts: make(map[string]netns.Host)}
	if netns.Check() == nil && !o.Loopback {
		if w.net, err = netns.New(ctx, "anser-faults"); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

// close ends running processes, and reports crashes.
func (w *world) close() error {
	var failed []error
	for _, p := range slices.Backward(w.procs) {
		failed = append(failed, p.crash())
		if err := p.stop(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			failed = append(failed, err)
		}
	}
	for _, f := range slices.Backward(w.undo) {
		failed = append(failed, f())
	}
	if w.net != nil {
		failed = append(failed, w.net.Close())
	}
	return errors.Join(append(failed, os.RemoveAll(w.dir))...)
}

// host returns the host of that name.
func (w *world) host(name string) (netns.Host, error) {
	if h, ok := w.hosts[name]; ok || w.net == nil {
		return h, nil
	}
	h, err := w.net.Add(w.ctx, name)
	w.hosts[name] = h
	return h, err
}

// address returns one that a process can listen on there: every time the same on a host, and a
// free one on this machine.
func (w *world) address(h netns.Host) string {
	if h.IP != "" {
		return h.IP + ":8972"
	}
	for {
		// Below the range that the kernel hands out for other connections, so that a process which
		// is started again finds its port free. A port far below is the sign for the other worlds
		// that this one is taken.
		port := 20_000 + rand.IntN(4_000)
		sign, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port-8_000))
		if err != nil {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			w.undo = append(w.undo, sign.Close)
			return address
		}
		sign.Close()
	}
}

// start starts a process on the host with its name. An empty c.Listen is set by the role.
func (w *world) start(role, name string, c config) (*process, error) {
	h, err := w.host(name)
	if err != nil {
		return nil, err
	}
	if c.Listen == "" && (role == "registry" || role == "gateway" || strings.HasSuffix(role, "server")) {
		c.Listen = w.address(h)
	}
	c.Name = fmt.Sprintf("%s-%d", name, len(w.procs)) // the next process on the host has another book
	c.Short = !w.o.Long
	p, err := start(name, role, h, c)
	if err != nil {
		return nil, err
	}
	w.procs = append(w.procs, p)
	return p, nil
}

// role returns the name of that of the framework which is played.
func (w *world) role(name string) string {
	if w.o.peer != "" {
		return w.o.peer + "-" + name
	}
	return name
}

// again starts a process like one that has ended.
func (w *world) again(p *process) (*process, error) { return w.start(p.role, p.name, p.config) }

// folder makes one.
func (w *world) folder(name string) (string, error) {
	dir := filepath.Join(w.dir, name)
	return dir, os.MkdirAll(dir, 0o700)
}

// books is the folder in which servers record their executions.
func (w *world) books() string { return filepath.Join(w.dir, "books") }

// sleep waits for d, or until the context ends.
func (w *world) sleep(d time.Duration) error {
	select {
	case <-w.ctx.Done():
		return w.ctx.Err()
	case <-time.After(d):
		return w.ctx.Err()
	}
}

// until waits until f returns true, and returns how long that took.
func (w *world) until(what string, f func() (bool, error)) (time.Duration, error) {
	for began := time.Now(); ; {
		ok, err := f()
		if err != nil {
			return 0, err
		}
		took := time.Since(began)
		if ok {
			return took, nil
		}
		if took > bound {
			return 0, fmt.Errorf("not within %v: %s", bound, what)
		}
		if err := w.sleep(5 * time.Millisecond); err != nil {
			return 0, err
		}
	}
}
