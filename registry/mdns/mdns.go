// Package mdns announces and finds instances on the local network by multicast DNS (RFC 6762, RFC 6763),
// without any server: for laptops, labs and small networks. Everybody on the network can announce whatever they
// like, and multicast ends at the next router.
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

// What holds unless an option says otherwise.
const (
	DefaultType = "_anser._tcp"
	DefaultTTL  = 10 * time.Second
)

// MaxInstances is how many instances of all services a Registry remembers; further ones are trouble.
const MaxInstances = 10_000

// gatherTime is how long the answers to the first question may take.
const gatherTime = 500 * time.Millisecond

// Registry is a registry.Registry without a server: each one announces its own instances again and again, and
// remembers those of the others. All methods are safe for concurrent use.
type Registry struct {
	kind   string // "_anser._tcp.local."
	ttl    time.Duration
	owner  string // tells the records of this registry from those of others
	link   *link
	ctx    context.Context // ends with registry.ErrClosed
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	answer chan struct{} // holds a token when somebody has asked

	closing sync.Once
	sending sync.Mutex // held while own records change or are sent, so that nothing old is sent after something new

	mu       sync.Mutex // guards what follows; taken under sending, never the other way round
	own      map[string]*record
	leaving  []goodbye          // to be said again
	known    map[string]*record // own ones too; by label
	settled  time.Time          // from when on the list is worth telling
	problem  error              // why nothing can be sent, or nil
	echoes   map[uint16]chan struct{}
	overflow bool          // there are more than MaxInstances
	changed  chan struct{} // closed and replaced when known, settled or problem changed
}

// record is an instance and who announces it.
type record struct {
	label   string // its name in the DNS
	in      registry.Instance
	owner   string
	at      int64     // grows with each change; the later of two owners has the key
	expires time.Time // zero for own ones
	again   int       // how often to announce it soon
}

// goodbye is a record that was taken back.
type goodbye struct {
	label, owner string
	at           int64
	again        int
}

// Option changes how a Registry works.
type Option func(*options) error

type options struct {
	kind       string
	ttl        time.Duration
	interfaces []string
}

// Type sets the type of service in the DNS, DefaultType by default. Registries of different types do not see
// each other.
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

// TTL sets after what time without a sign of life instances go, DefaultTTL by default, and at least a second.
// They are announced three times within it.
func TTL(d time.Duration) Option {
	return func(o *options) error {
		if d < time.Second {
			return fmt.Errorf("mdns.TTL(%v): at least a second", d)
		}
		o.ttl = d
		return nil
	}
}

// Interfaces restricts the registry to network interfaces, by their names. By default they are all that are up
// and do multicast, and the loopback where there is none.
func Interfaces(names ...string) Option {
	return func(o *options) error {
		if len(names) == 0 {
			return errors.New("mdns.Interfaces: name one, or leave the option out")
		}
		o.interfaces = names
		return nil
	}
}

// New returns a registry, which begins to listen at once. A network that is not there yet is no error: it is
// found when it comes.
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

// Close implements registry.Registry. It says goodbye for what was announced.
func (r *Registry) Close() error {
	r.closing.Do(func() {
		r.sending.Lock() // no Register is half done
		r.cancel(registry.ErrClosed)
		r.sending.Unlock()
		r.farewell()
		r.link.close()
		r.wg.Wait()
	})
	return nil
}

// signalLocked wakes who waits for a change.
func (r *Registry) signalLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}
