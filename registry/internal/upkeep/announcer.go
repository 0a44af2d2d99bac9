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

// ErrTaken is what a Backend answers for an item that another process has announced since.
var ErrTaken = errors.New("another process has taken the instance over")

// How long Close waits for a request that is on its way, then for a server that does not answer, and for one
// that does but has much to withdraw.
const (
	lastRequest    = time.Second
	withdrawal     = 2 * time.Second
	withdrawalMost = 10 * time.Second
)

// Item is what a Backend is to make true of one instance.
type Item struct {
	Service, Key string
	// Want is what the registry is to have; nil means nothing.
	Want *registry.Instance
	// Force is set when a caller has just registered the instance: then the key is taken from whoever has
	// it. Otherwise a key that somebody else has is left to him, and the answer is ErrTaken.
	Force bool
}

// Backend writes to a registry what an Announcer wants there.
type Backend interface {
	// Apply makes the items true and renews what keeps them alive. It returns one error for each item: nil,
	// ErrTaken, or why the registry does not take it. err says instead that it is not known what became of
	// the items; they come again. One goroutine calls it.
	Apply(ctx context.Context, items []Item) (results []error, err error)
}

// Announcer keeps instances in a registry that takes many at once. Callers say what they want there; one goroutine
// makes it so: it applies what is new at once, and everything at every renewal. A lost lease, a record that somebody
// has deleted and a write whose outcome is unknown are then the same case.
type Announcer struct {
	backend Backend
	every   time.Duration
	ledger  *Ledger[recordID, *registry.Instance]
	ctx     context.Context // of requests; ends soon after stop
	cancel  context.CancelFunc
	stop    chan struct{} // closed by Close
}

type recordID struct{ service, key string }

// NewAnnouncer returns an announcer that renews what it has announced at the interval every. It starts
// its goroutine with the first instance.
func NewAnnouncer(b Backend, every time.Duration, log *slog.Logger) *Announcer {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Announcer{backend: b, every: every, ctx: ctx, cancel: cancel, stop: make(chan struct{})}
	a.ledger = NewLedger[recordID, *registry.Instance](Terms[recordID]{
		Run: a.run, Hopeless: IsHopeless, Ended: context.Cause, Outage: "they expire", Log: log,
		Attrs: func(id recordID) []any { return []any{"service", id.service, "instance", id.key} },
	})
	return a
}

// Register does what a registry.Registrar promises.
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

// Deregister does what a registry.Registrar promises. When ctx ends first, the record goes as soon as the
// registry can be reached.
func (a *Announcer) Deregister(ctx context.Context, in registry.Instance) error {
	err := a.ledger.Remove(ctx, recordID{in.Service, in.Key()})
	if err != nil && !errors.Is(err, registry.ErrClosed) {
		return fmt.Errorf("deregister %q of service %q: %w", in.Key(), in.Service, err)
	}
	return err
}

// Close withdraws everything that was announced and stops the goroutine. Where the server does not answer
// in time it says so, and the instances go by themselves.
func (a *Announcer) Close() error {
	if !a.ledger.Close() {
		a.ledger.Leave()
		return nil
	}
	close(a.stop)
	defer a.cancel()
	// A request that is cut off may still be carried out, after what withdraws it.
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
			return fmt.Errorf("withdraw instances (by themselves they go when they are no longer renewed): %w", err)
		}
		return nil
	}
}

// run makes the registry have what is wanted until the announcer is closed.
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
				// Who knows what the registry has after an outage. New wishes wait as well: they would fail
				// for the same reason.
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

// settle notes what became of the wishes. One that the registry refuses is tried again at the next renewal.
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
