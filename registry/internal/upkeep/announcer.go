package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// ErrTaken is a Backend's result for an item that another process has announced since.
var ErrTaken = errors.New("another process has taken the instance over")

// How long Close waits for a request in flight, then for a server that does not answer, and for
// one that answers but has many records to withdraw.
const (
	lastRequest    = time.Second
	withdrawal     = 2 * time.Second
	withdrawalMost = 10 * time.Second
)

// Item is the wanted state of one instance.
type Item struct {
	Service, Key string
	// Want is the wanted record; nil means none.
	Want *registry.Instance
	// Force is set if a caller has just registered the instance: then the key is taken from its
	// present owner. Otherwise a key of another owner is left unchanged, and the result is
	// ErrTaken.
	Force bool
}

// Backend writes the records of an Announcer to a registry.
type Backend interface {
	// Apply makes the registry match the items and renews their leases. It returns one error per
	// item: nil, ErrTaken, or why the registry rejects it. err means instead that the outcome is
	// unknown; the items are then applied again. Apply is called by one goroutine.
	Apply(ctx context.Context, items []Item) (results []error, err error)
}

// Announcer keeps instances in a registry that takes many of them per request. Callers set the
// wanted records; one goroutine applies new ones at once, and all of them at every renewal. A lost
// lease, a record deleted by another program and a write with an unknown outcome are then the same
// case.
type Announcer struct {
	backend Backend
	every   time.Duration
	ledger  *Ledger[recordID, *registry.Instance]
	ctx     context.Context // of requests; ends soon after stop
	cancel  context.CancelFunc
	stop    chan struct{} // closed by Close
}

type recordID struct{ service, key string }

// NewAnnouncer returns an announcer with the given renewal interval. It starts its goroutine with
// the first instance.
func NewAnnouncer(b Backend, every time.Duration, log *slog.Logger) *Announcer {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Announcer{backend: b, every: every, ctx: ctx, cancel: cancel, stop: make(chan struct{})}
	a.ledger = NewLedger[recordID, *registry.Instance](Terms[recordID]{
		Run: a.run, Hopeless: IsHopeless, Ended: context.Cause, Outage: "they expire", Log: log,
		Attrs: func(id recordID) []any { return []any{"service", id.service, "instance", id.key} },
	})
	return a
}

// Register implements the contract of registry.Registrar.
func (a *Announcer) Register(ctx context.Context, in registry.Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	in = in.Clone()
	err := a.ledger.Put(ctx, recordID{in.Service, in.Key()}, &in)
	if err != nil && !errors.Is(err, registry.ErrClosed) {
		return fmt.Errorf("register %q of service %q: %w", in.Key(), in.Service, err)
	}
	return err
}

// Deregister implements the contract of registry.Registrar. If ctx ends first, the record is
// removed as soon as the registry can be reached.
func (a *Announcer) Deregister(ctx context.Context, in registry.Instance) error {
	err := a.ledger.Remove(ctx, recordID{in.Service, in.Key()})
	if err != nil && !errors.Is(err, registry.ErrClosed) {
		return fmt.Errorf("deregister %q of service %q: %w", in.Key(), in.Service, err)
	}
	return err
}

// Close withdraws all announced instances and stops the goroutine. If the server does not answer
// in time, it returns an error, and the instances expire by themselves.
func (a *Announcer) Close() error {
	if !a.ledger.Close() {
		a.ledger.Leave()
		return nil
	}
	close(a.stop)
	defer a.cancel()
	// A request that is cancelled may still be carried out, after the one that withdraws it.
	late := time.AfterFunc(lastRequest, a.cancel)
	left := a.ledger.Leave()
	late.Stop()
	return a.withdraw(left)
}

func (a *Announcer) withdraw(left []recordID) error {
	if len(left) == 0 {
		return nil
	}
	items := make([]Item, len(left))
	for i, id := range left {
		items[i] = Item{Service: id.service, Key: id.key}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), withdrawalMost)
	defer cancel()
	var delay Delay
	for {
		results, err := a.backend.Apply(ctx, items)
		if err == nil {
			results = slices.DeleteFunc(results, func(err error) bool { return errors.Is(err, ErrTaken) })
			err = errors.Join(results...)
		} else if !IsHopeless(err) && time.Since(began) < withdrawal && delay.Wait(ctx, nil) {
			continue
		}
		if err != nil {
			return fmt.Errorf("withdraw instances (they expire when they are no longer renewed): %w", err)
		}
		return nil
	}
}

// run makes the registry match the wanted records until the announcer is closed.
func (a *Announcer) run() {
	var delay Delay
	renewal := time.NewTimer(a.every)
	defer renewal.Stop()
	for {
		wishes := slices.Collect(a.ledger.Due())
		if len(wishes) > 0 {
			results, err := a.apply(wishes)
			if a.stopping() {
				return
			}
			a.ledger.Note(err)
			if err != nil {
				// After an outage the state of the registry is unknown. New wishes wait, too: they
				// would fail for the same reason.
				a.ledger.MarkAll()
				delay.Wait(a.ctx, a.stop)
				continue
			}
			a.settle(wishes, results)
			delay = Delay{}
		}
		select {
		case <-a.stop:
			return
		case <-a.ledger.Kick():
		case <-renewal.C:
			renewal.Reset(a.every)
			a.ledger.MarkAll()
		}
	}
}

func (a *Announcer) apply(wishes []Wish[recordID, *registry.Instance]) ([]error, error) {
	items := make([]Item, len(wishes))
	for i, w := range wishes {
		items[i] = Item{Service: w.Key.service, Key: w.Key.key, Want: w.Want, Force: w.Force}
	}
	return a.backend.Apply(a.ctx, items)
}

// settle records the results of the wishes. A wish that the registry rejects is retried at the
// next renewal.
func (a *Announcer) settle(wishes []Wish[recordID, *registry.Instance], results []error) {
	for i, w := range wishes {
		if err := results[i]; err != nil && !errors.Is(err, ErrTaken) {
			a.ledger.Refuse(w, err)
		} else {
			a.ledger.Settle(w, err != nil)
		}
	}
}

func (a *Announcer) stopping() bool {
	select {
	case <-a.stop:
		return true
	default:
		return a.ctx.Err() != nil
	}
}
