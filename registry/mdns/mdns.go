// Package mdns announces and finds instances on the local network by multicast DNS (RFC 6762, RFC
// 6763), without any server: for laptops, labs and small networks. Every host on the network can
// announce any instance, and multicast ends at the next router.
package mdns

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Defaults of the options.
const (
	DefaultType = "_anser._tcp"
	DefaultTTL  = 10 * time.Second
)

// MaxInstances is how many instances of all services a Registry stores; further ones are reported
// as trouble.
const MaxInstances = 10_000

// gatherTime is how long the answers to the first query may take.
const gatherTime = 500 * time.Millisecond

// Registry is a registry.Registry without a server: every Registry announces its own instances
// periodically, and stores those of the others. All methods are safe for concurrent use.
type Registry struct {
	kind   string // "_anser._tcp.local."
	ttl    time.Duration
	owner  string // distinguishes the records of this registry from those of others
	link   *link
	ctx    context.Context // ends with the cause registry.ErrClosed
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	answer chan struct{} // holds a token if a query has arrived

	closing sync.Once
	sending sync.Mutex // held while own records change or are sent, so that no old record follows a newer one

	mu       sync.Mutex // guards the fields below; taken under sending, never the other way round
	own      map[string]*record
	leaving  []goodbye          // to be repeated
	known    map[string]*record // own and foreign records, by label
	settled  time.Time          // when the list is complete
	problem  error              // why sending fails, or nil
	echoes   map[uint16]chan struct{}
	overflow bool          // there are more than MaxInstances
	changed  chan struct{} // closed and replaced when known, settled or problem changed
}

// record is an instance and its owner.
type record struct {
	label   string // its name in the DNS
	in      registry.Instance
	owner   string
	at      int64     // grows with each change; the later of two owners has the key
	expires time.Time // zero for own ones
	again   int       // how many early repetitions remain
}

// goodbye is a record that was withdrawn.
type goodbye struct {
	label, owner string
	at           int64
	again        int
}

// Option configures a Registry.
type Option func(*options) error

type options struct {
	kind       string
	ttl        time.Duration
	interfaces []string
}

// Type sets the DNS-SD service type, DefaultType by default. Registries of different types do not
// see each other.
func Type(kind string) Option {
	return func(o *options) error {
		name, proto, _ := strings.Cut(kind, ".")
		if len(name) < 2 || len(name) > 16 || name[0] != '_' || proto != "_tcp" && proto != "_udp" || registry.CheckService(kind) != nil {
			return fmt.Errorf("mdns.Type(%q): use _name._tcp, with at most 15 letters, digits and dashes", kind)
		}
		o.kind = kind
		return nil
	}
}

// TTL sets after how long without an announcement instances are removed, DefaultTTL by default,
// and at least one second. They are announced three times within it.
func TTL(d time.Duration) Option {
	return func(o *options) error {
		if d < time.Second {
			return fmt.Errorf("mdns.TTL(%v): use at least a second", d)
		}
		o.ttl = d
		return nil
	}
}

// Interfaces restricts the registry to the network interfaces with these names. By default it uses
// all that are up and support multicast, and the loopback if there is none.
func Interfaces(names ...string) Option {
	return func(o *options) error {
		if len(names) == 0 {
			return errors.New("mdns.Interfaces: name one, or leave the option out")
		}
		o.interfaces = names
		return nil
	}
}

// New returns a registry, which begins to listen at once. A missing network is not an error: the
// registry uses it as soon as it is up.
func New(opts ...Option) (*Registry, error) {
	o := options{kind: DefaultType, ttl: DefaultTTL}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("mdns.New: an option is nil")
		}
		if err := opt(&o); err != nil {
			return nil, err
		}
	}
	l, err := newLink(o.interfaces)
	if err != nil {
		return nil, fmt.Errorf("mDNS: %w", err)
	}
	r := &Registry{
		kind: o.kind + ".local.", ttl: o.ttl, owner: rand.Text(), link: l, answer: make(chan struct{}, 1),
		own: make(map[string]*record), known: make(map[string]*record), echoes: make(map[uint16]chan struct{}),
		settled: time.Now().Add(gatherTime), changed: make(chan struct{}),
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.wg.Go(r.listen)
	r.wg.Go(r.keep)
	r.wg.Go(r.reply)
	return r, nil
}

// Close implements registry.Registry. It sends goodbyes for the announced instances.
func (r *Registry) Close() error {
	r.closing.Do(func() {
		r.sending.Lock() // wait for a Register in progress
		r.cancel(registry.ErrClosed)
		r.sending.Unlock()
		r.farewell()
		r.link.close()
		r.wg.Wait()
	})
	return nil
}

// signalLocked wakes the goroutines that wait for a change.
func (r *Registry) signalLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}
