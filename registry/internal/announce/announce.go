// Package announce keeps instances in a registry for as long as a process wants them there. It is
// for registries whose servers take one record per request.
package announce

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// workers is the number of concurrent writes or renewals.
const workers = 16

// A Store writes records. Every method returns within seconds, even if the server does not answer,
// and soon after ctx is done. Begin is never called concurrently; Renew and Write are called
// concurrently for different keys, but not for the same one.
type Store interface {
	// Begin makes sure that records can be written. fresh means that the server has lost all
	// earlier records.
	Begin(ctx context.Context) (fresh bool, err error)
	// Renew sends a heartbeat for a record, and reports whether the server has it as written by
	// this process.
	Renew(ctx context.Context, key string, in *registry.Instance) (ok bool, err error)
	// Write makes the server hold the record, or none if in is nil. It replaces or removes a
	// record of another process only if force is set; otherwise it leaves that record unchanged
	// and returns taken.
	Write(ctx context.Context, key string, in *registry.Instance, force bool) (taken bool, err error)
}

// Config configures an Announcer. All fields are required.
type Config struct {
	Store Store
	// Every is the interval between heartbeats.
	Every time.Duration
	// Hopeless reports whether a request that failed with this error would fail again.
	Hopeless func(error) bool
	Log      *slog.Logger
}

// Announcer keeps instances in a registry. Callers set the wanted records; one goroutine, started
// by the first of them, makes the server match: it sends heartbeats, compares the server's records
// with the wanted ones, and writes the differences. A lost session, a deleted record and a write
// with an unknown outcome are then the same case. All methods are safe for concurrent use.
type Announcer struct {
	Config
	ledger *ledger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	hurry  chan struct{} // holds a token if a pause after a failure must end

	renewAt time.Time // owned by the goroutine in run
}

type (
	ledger = upkeep.Ledger[string, *registry.Instance]
	wish   = upkeep.Wish[string, *registry.Instance]
)

// New returns an Announcer. It starts no goroutine yet.
func New(cfg Config) *Announcer {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Announcer{Config: cfg, ctx: ctx, cancel: cancel, hurry: make(chan struct{}, 1)}
	a.ledger = upkeep.NewLedger[string, *registry.Instance](upkeep.Terms[string]{
		Run: a.run, Hopeless: cfg.Hopeless, Ended: context.Context.Err, Outage: "it drops them", Log: cfg.Log,
		Attrs: func(key string) []any { return []any{"key", key} },
	})
	return a
}

// Register implements the contract of registry.Registrar. key is the record's key.
func (a *Announcer) Register(ctx context.Context, key string, in registry.Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	in = in.Clone()
	if err := a.ledger.Put(ctx, key, &in); err != nil {
		return fmt.Errorf("register %q of service %q: %w", in.Key(), in.Service, err)
	}
	return nil
}

// Deregister implements the contract of registry.Registrar. If ctx ends first, the record under
// key is removed as soon as the server can be reached.
func (a *Announcer) Deregister(ctx context.Context, key string, in registry.Instance) error {
	if err := a.ledger.Remove(ctx, key); err != nil {
		return fmt.Errorf("deregister %q of service %q: %w", in.Key(), in.Service, err)
	}
	return nil
}

// Hurry ends a pause after a failure: the server is back.
func (a *Announcer) Hurry() { upkeep.Signal(a.hurry) }

// Close stops the goroutine and returns the keys under which the server may still have records.
// Waiting calls return ErrClosed.
func (a *Announcer) Close() []string {
	a.ledger.Close()
	a.cancel()
	return slices.Sorted(slices.Values(a.ledger.Leave()))
}
