package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/transport/tlsfiles"
)

// service is the name of the service that all rows call.
const service = "ledger"

// config is the configuration of a process. Not every role uses all of it.
type config struct {
	Name     string
	Listen   string        `json:",omitempty"`
	Dir      string        `json:",omitempty"` // of the registry's data, of snapshots, or of books
	Registry string        `json:",omitempty"` // address of the registry
	Announce string        `json:",omitempty"` // address under which a server is announced; empty: its own
	TTL      time.Duration `json:",omitempty"` // of leases
	MinFree  int64         `json:",omitempty"` // of the registry's disk
	Target   string        `json:",omitempty"` // of a client
	Timeout  time.Duration `json:",omitempty"` // of calls
	Conns    int           `json:",omitempty"`
	Attempts int           `json:",omitempty"` // of a call; 0: the default
	Stall    time.Duration `json:",omitempty"` // of writes; 0: the default
	Files    uint64        `json:",omitempty"` // descriptors that a server has; 0: as many as there are
	Group    string        `json:",omitempty"` // folder of the cgroup of a server
	Memory   int           `json:",omitempty"` // bytes of requests that a server holds at once; 0: the default
	Body     int           `json:",omitempty"` // bytes that calls carry besides the entry
	// Keepalive is what both sides have in place of 30 s and 10 s; zero: the defaults.
	Keepalive [2]time.Duration `json:",omitzero"`
	TLS       *tlsNames        `json:",omitempty"`
	Checksums bool             `json:",omitempty"`
	Keyed     int              `json:",omitempty"` // bytes that servers have for idempotency keys, which plain calls have; 0: they have none
	Revoked   string           `json:",omitempty"` // file of revoked certificates; clients of a server that has one need a certificate
	Windows   [2]int           `json:",omitzero"`  // of a stream and of a connection; zero: the defaults
	Message   int              `json:",omitempty"` // bytes that a message has at most; 0: the default
	Slots     int              `json:",omitempty"` // calls that the handler has room for at a time; 0: no bound
	Sleep     time.Duration    `json:",omitempty"` // of the handler
	Adaptive  bool             `json:",omitempty"` // the server has an adaptive limit
	Many      bool             `json:",omitempty"` // the server takes as many calls as come, and has patience with handshakes
	Short     bool             `json:",omitempty"` // it is the short form of a row
	Peer      string           `json:",omitempty"` // whose protocol an idle client speaks; empty: Anser's
	File      string           `json:",omitempty"` // configuration of a gateway
	Service   string           `json:",omitempty"` // of a server, and which one clients of a gateway call; empty: service
	Over      []string         `json:",omitempty"` // protocols in which clients call, in turns: anser, grpc, json; none: Anser's
}

// of returns the name of the service.
func (c *config) of() string { return cmp.Or(c.Service, service) }

// tlsNames are the files of certificates.
type tlsNames struct{ Chain, Key, Authority string }

func (n *tlsNames) open() (*tlsfiles.Files, error) {
	return tlsfiles.Open(tlsfiles.Certificate(n.Chain, n.Key), tlsfiles.Authorities(n.Authority), tlsfiles.Poll(time.Second), tlsfiles.Logger(logger()))
}

var roles = map[string]func(config, *parent) error{
	"registry": runRegistry,
	"server":   runServer,
	"gateway":  runGateway,
	"client":   runClient,
	"idle":     runIdle,
	"crowd":    runCrowd,
	"stranger": runStrangers,
	"proxy":    runProxy,

	"grpc-server": runGRPCServer,
	"grpc-client": runGRPCClient,
	"rpcx-server": runRPCXServer,
	"rpcx-client": runRPCXClient,
}

func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// entry is request and reply. The reply repeats what the handler has read.
type entry struct {
	ID      []byte
	Account int64
	Amount  int64
}

// The methods of a server.
const (
	appendEntry anser.Method[entry, entry] = "Ledger.Append" // not idempotent
	setEntry    anser.Method[entry, entry] = "Ledger.Set"    // idempotent
	hold        anser.Method[entry, entry] = "Ledger.Hold"   // waits until it is cancelled

	feed anser.StreamMethod[[]byte, []byte] = "Ledger.Feed" // sends as much as it can
	pour anser.StreamMethod[[]byte, []byte] = "Ledger.Pour" // receives, and says how much
)

// usage is what a process uses.
type usage struct {
	CPU        time.Duration // since it started
	Resident   int64         // bytes
	Peak       int64         // the most that it was; 0 where that is not known
	Heap       int64         // bytes of live objects after a garbage collection; 0 if there was none
	Stacks     int64         // bytes of stacks after it
	Goroutines int
	Conns      int
	Running    int64 // calls of hold, and streams of feed
	Feeds      int64 // streams that ever ran
	Attempts   int64 // of the client
	Calls      int64 // that ended, of the client
	Succeeded  int64 // of those
}

// used returns the part of usage that every process has.
func used() (usage, error) {
	cpu, resident, err := ownUsage()
	return usage{CPU: cpu, Resident: resident, Peak: ownPeak(), Goroutines: runtime.NumGoroutine()}, err
}

// settle releases unused memory, and returns the amount in use. A stack that was once larger
// shrinks by half in a garbage collection, to 2 KiB in the end, as it does in any process that
// goes on.
func settle() (heap, stacks int64) {
	for range 4 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse)
}

// runRegistry is the role of a registry.
func runRegistry(c config, p *parent) error {
	m, err := embedded.Start(context.Background(), embedded.Config{Dir: c.Dir, Listen: c.Listen, Insecure: true, MinFree: c.MinFree, Logger: logger()})
	if err != nil {
		return err
	}
	defer m.Close()
	if err := p.ready(); err != nil {
		return err
	}
	go func() {
		<-m.Done()
		if err := m.Err(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	return p.obey(func(c command) (any, error) { return nil, fmt.Errorf("a registry cannot %s", c.Do) })
}

// server is what a process of the role server is.
type server struct {
	*anser.Server // nil: it is a peer's
	book          *ledger.Book
	slots         chan struct{} // nil: no bound
	sleep         atomic.Int64  // nanoseconds
	running       *running
	conns         func() int
}

// newServer returns a server without a framework. Its book must be closed.
func newServer(c config) (*server, error) {
	s := &server{running: newRunning()}
	s.sleep.Store(int64(c.Sleep))
	if c.Slots > 0 {
		s.slots = make(chan struct{}, c.Slots)
	}
	var err error
	s.book, err = ledger.OpenBook(c.Dir, c.Name)
	return s, err
}

func runServer(c config, p *parent) error {
	s, err := newServer(c)
	if err != nil {
		return err
	}
	defer s.book.Close()
	opts := []anser.ServerOption{anser.Logger(logger()), anser.InsecurePublic()}
	if c.Stall > 0 {
		opts = append(opts, anser.WriteStall(c.Stall))
	}
	if c.Registry != "" {
		r, err := etcd.Dial([]string{c.Registry}, etcd.TTL(c.TTL), etcd.Logger(logger()))
		if err != nil {
			return err
		}
		defer r.Close()
		opts = append(opts, anser.Announce(r, registry.Instance{Service: c.of(), Address: c.Announce}))
	}
	if c.Keepalive[0] > 0 {
		opts = append(opts, anser.Keepalive(c.Keepalive[0], c.Keepalive[1]), anser.MinPing(c.Keepalive[0]/2))
	}
	if c.TLS != nil {
		files, err := c.TLS.open()
		if err != nil {
			return err
		}
		defer files.Close()
		opts = append(opts, anser.TLS(files.Server()))
	}
	if c.Checksums {
		opts = append(opts, anser.Checksums())
	}
	if c.Keyed > 0 {
		opts = append(opts, anser.Deduplicate(), anser.ReplyCache(anser.ReplyCacheLimits{Bytes: c.Keyed}))
	}
	if c.Revoked != "" {
		certificates, err := auth.OpenMutualTLS([]string{c.Revoked}, auth.Logger(logger()))
		if err != nil {
			return err
		}
		defer certificates.Close()
		opts = append(opts, anser.Authenticate(certificates))
	}
	if c.Message > 0 {
		opts = append(opts, anser.MaxMessage(c.Message))
	}
	if err := c.confine(); err != nil {
		return err
	}
	if c.Memory > 0 {
		opts = append(opts, anser.MaxMemory(c.Memory))
	}
	if c.Adaptive {
		opts = append(opts, anser.AdaptiveLimit(0, 0))
	}
	if c.Many {
		opts = append(opts, anser.MaxInFlight(1_000_000), anser.MaxCalls(1_000_000), anser.HandshakeTimeout(bound))
	}
	s.Server = anser.NewServer(opts...)
	s.conns = func() int { return s.Stats().Conns }
	if err := s.handle(); err != nil {
		return err
	}
	go s.answer(p)
	if err := s.ListenAndServe(c.Listen); !errors.Is(err, anser.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *server) handle() error {
	return errors.Join(
		appendEntry.Handle(s.Server, s.record),
		setEntry.Handle(s.Server, s.record, anser.Idempotent()),
		appendBulk.Handle(s.Server, s.recordBulk),
		setBulk.Handle(s.Server, s.recordBulk, anser.Idempotent()),
		hold.Handle(s.Server, s.hold),
		feed.Handle(s.Server, s.feed),
		pour.Handle(s.Server, s.pour),
	)
}

// answer answers the parent's commands, and ends the process with the parent.
func (s *server) answer(p *parent) {
	for len(s.Addrs()) == 0 {
		time.Sleep(time.Millisecond)
	}
	err := p.ready()
	if err == nil {
		err = p.obey(s.do)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.Close()
	os.Exit(0)
}

func (s *server) do(c command) (any, error) {
	switch c.Do {
	case "cpu": // needs no file, as usage does
		return ownCPU()
	case "descriptors":
		return descriptorsLeft()
	case "usage", "settle":
		var heap, stacks int64
		if c.Do == "settle" {
			heap, stacks = settle()
		}
		u, err := used()
		u.Heap, u.Stacks, u.Conns, u.Running = heap, stacks, s.conns(), s.running.now()
		u.Feeds = s.running.feeds.Load()
		return u, err
	case "wait": // until that number of calls of hold run
		return s.running.wait(c.Value)
	case "sleep":
		var d time.Duration
		err := json.Unmarshal(c.Value, &d)
		s.sleep.Store(int64(d))
		return nil, err
	}
	return nil, fmt.Errorf("a server cannot %s", c.Do)
}

// record writes down that it ran before it does anything else.
func (s *server) record(ctx context.Context, in *entry) (*entry, error) {
	e := ledger.Execution{Entry: ledger.Entry{Account: in.Account, Amount: in.Amount}, At: time.Now().UnixNano()}
	if copy(e.ID[:], in.ID) != len(e.ID) {
		return nil, anser.Errorf(anser.InvalidArgument, "the number of the call has %d bytes", len(in.ID))
	}
	if err := s.book.Record(&e); err != nil {
		return nil, err
	}
	if s.slots != nil {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if d := time.Duration(s.sleep.Load()); d > 0 {
		time.Sleep(d)
	}
	return in, nil
}
