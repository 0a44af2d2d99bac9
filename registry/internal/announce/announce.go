// Package announce keeps instances in a registry for as long as a process wants them there. Registries on
// servers that answer one request for one record use it.
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

// workers is how many records are written or renewed at once.
const workers = 16

// A Store writes records. Every method returns within seconds, also when the server does not answer, and
// soon after ctx is done. Begin is called alone; Renew and Write are called for several keys at once, each
// key in one call at a time.
type Store interface {
	// Begin makes sure that records can be written. fresh says that the server has dropped all that were.
	Begin(ctx context.Context) (fresh bool, err error)
	// Renew gives a sign of life for a record, and reports whether the server has it as this process
	// wrote it.
	Renew(ctx context.Context, key string, in *registry.Instance) (ok bool, err error)
	// Write makes the server have the record, or none where in is nil. It replaces or removes the record
	// of another process only if force is set; otherwise it leaves that alone and reports taken.
	Write(ctx context.Context, key string, in *registry.Instance, force bool) (taken bool, err error)
}

// Config says how an Announcer works. All fields are needed.
type Config struct {
	Store Store
	// Every is the time between two signs of life.
	Every time.Duration
	// Hopeless reports whether a request that failed with the error would fail again.
	Hopeless func(error) bool
	Log      *slog.Logger
}

// Announcer keeps instances in a registry. Callers say what they want there; one goroutine, which starts with
// the first wish, makes it so: it gives signs of life, compares what the server has with what it should have,
// and writes what differs. A lost session, a deleted record and a write whose outcome is unknown are then the
// same case. All methods are safe for concurrent use.
type Announcer struct {
	Config
	ledger *ledger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	hurry  chan struct{} // holds a token when a pause after a failure is to end

	renewAt time.Time // of the goroutine in run alone
}

type (
	ledger = upkeep.Ledger[string, *registry.Instance]
	wish   = upkeep.Wish[string, *registry.Instance]
)

// New returns an Announcer that holds no goroutine yet.
func New(cfg Config) *Announcer {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Announcer{Config: cfg, ctx: ctx, cancel: cancel, hurry: make(chan struct{}, 1)}
	a.ledger = upkeep.NewLedger[string, *registry.Instance](upkeep.Terms[string]{
		Run: a.run, Hopeless: cfg.Hopeless, Ended: context.Context.Err, Outage: "it drops them", Log: cfg.Log,
		Attrs: func(key string) []any { return []any{"key", key} },
	})
	return a
}

// Register does what a registry.Registrar promises. The record's key is key.
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

// Deregister does what a registry.Registrar promises. When ctx ends first, the record under key goes as soon as
// the server can be reached.
func (a *Announcer) Deregister(ctx context.Context, key string, in registry.Instance) error {
	if err := a.ledger.Remove(ctx, key); err != nil {
		return fmt.Errorf("deregister %q of service %q: %w", in.Key(), in.Service, err)
	}
	return nil
}

// Hurry ends a pause after a failure: the server is back.
func (a *Announcer) Hurry() { upkeep.Signal(a.hurry) }

// Close stops the goroutine and returns the keys under which the server may still have records. Whoever waits
// gets ErrClosed.
func (a *Announcer) Close() []string {
	a.ledger.Close()
	a.cancel()
	return slices.Sorted(slices.Values(a.ledger.Leave()))
}
