package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/filetransfer"
	"github.com/anser-rpc/anser/registry"
)

const (
	fleetSize = 4               // instances of a service
	drainTime = 5 * time.Second // for a graceful shutdown of a server
)

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// A fleet is the instances of one service, of which one at a time is replaced.
type fleet struct {
	service  string
	registry registry.Registrar
	identity *identity // nil: without TLS
	root     *os.Root  // of the files of all instances
	tally    *tally
	mail     *mail

	mu      sync.Mutex // guards what follows
	servers []*instance
}

// An instance is a server with its connections.
type instance struct {
	server *anser.Server
	served chan error
	cutter *cutter
}

// start begins one more instance.
func (f *fleet) start() error {
	opts := []anser.ServerOption{
		silent, anser.NoSignals(), anser.AcceptCompression(all.Compressors()...),
		anser.Announce(f.registry, registry.Instance{Service: f.service}), anser.MinPing(time.Millisecond),
	}
	if f.identity != nil {
		opts = append(opts, anser.TLS(f.identity.server()))
	}
	s := anser.NewServer(opts...)
	h := handlers{f.tally, f.mail, s}
	if err := h.register(); err != nil {
		return err
	}
	// All instances share the folder, so that a transfer can continue on any of them.
	if _, err := filetransfer.Serve(s, f.root, filetransfer.Store("soak"), filetransfer.AllowRemove()); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	in := &instance{server: s, served: make(chan error, 1), cutter: &cutter{Listener: l}}
	go func() { in.served <- s.Serve(in.cutter) }()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers = append(f.servers, in)
	return nil
}

// fill starts the instances.
func (f *fleet) fill() error {
	for range fleetSize {
		if err := f.start(); err != nil {
			return err
		}
	}
	return nil
}

// replace starts an instance, and then ends the oldest one, gracefully or abruptly.
func (f *fleet) replace(r *rand.Rand) error {
	if err := f.start(); err != nil {
		return err
	}
	f.mu.Lock()
	old := f.servers[0]
	f.servers = f.servers[1:]
	f.mu.Unlock()
	if r.IntN(2) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		old.server.Shutdown(ctx) // streams may take longer: then it closes them
	}
	f.tally.replaced.Add(1)
	return old.end()
}

// end closes the server and checks that it served until then.
func (in *instance) end() error {
	in.server.Close()
	if err := <-in.served; !errors.Is(err, anser.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// close ends all instances.
func (f *fleet) close() error {
	f.mu.Lock()
	servers := f.servers
	f.servers = nil
	f.mu.Unlock()
	var errs []error
	for _, in := range servers {
		errs = append(errs, in.end())
	}
	return errors.Join(errs...)
}

// cut cuts a connection to one of the instances, if there is any.
func (f *fleet) cut(r *rand.Rand) {
	f.mu.Lock()
	var in *instance
	if len(f.servers) > 0 {
		in = f.servers[r.IntN(len(f.servers))]
	}
	f.mu.Unlock()
	if in != nil && in.cutter.cut(r) {
		f.tally.cuts.Add(1)
	}
}

// A cutter is a listener that remembers its latest connections. It does not wrap them, as servers
// treat bare connections of TCP in a way of their own.
type cutter struct {
	net.Listener

	mu     sync.Mutex // guards what follows
	latest [32]*net.TCPConn
	next   int
}

func (c *cutter) Accept() (net.Conn, error) {
	nc, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest[c.next%len(c.latest)] = nc.(*net.TCPConn)
	c.next++
	return nc, nil
}

// cut ends a connection, with a reset or in one direction first, and reports whether it did.
func (c *cutter) cut(r *rand.Rand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == 0 {
		return false
	}
	i := r.IntN(min(c.next, len(c.latest)))
	nc := c.latest[i]
	switch r.IntN(3) {
	case 0:
		nc.SetLinger(0) // a reset, which also discards data in flight
		return nc.Close() == nil
	case 1:
		return nc.CloseRead() == nil
	default:
		return nc.CloseWrite() == nil
	}
}

// every calls f until ctx ends, after times that are around d.
func every(ctx context.Context, r *rand.Rand, d time.Duration, f func()) {
	for {
		select {
		case <-time.After(d/2 + time.Duration(r.Int64N(int64(d)))):
		case <-ctx.Done():
			return
		}
		f()
	}
}
