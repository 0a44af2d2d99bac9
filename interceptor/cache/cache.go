// Package cache caches replies, on a client or on a server, and answers equal calls with them.
package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/interceptor/internal/flight"
	"github.com/anser-rpc/anser/interceptor/internal/share"
)

// Cache is an interceptor that caches replies. Create one per client or server: methods are
// identified by their names alone. All methods are safe for concurrent use.
//
// The key of an entry is the method, the codec, the bytes of the request, the values of [Vary] and
// [Partition], and on a client the type of the reply. The order of map entries in a request does
// not matter if the codec is a [codec.Canonical] or JSON; with another codec such calls may miss
// an entry, but no call ever gets the reply of another request.
//
// The cache stores bytes: each caller gets a message of its own, which it may modify. A reply from
// the cache has no trailers, address and attempt. Equal calls that miss at the same time are
// combined into one; each keeps its own deadline, and the call continues while any of them waits.
// Calls without a reply, streams, and the rare messages that change when they are encoded and
// decoded are not cached.
type Cache struct {
	o       options
	flights flight.Group[flightKey, *share.Result]
	buffers sync.Pool // of *[]byte

	mu         sync.Mutex // guards the fields below
	store      store
	refreshing int
	stats      Stats
}

// method is the state of a method.
type method struct {
	name       string
	ttl        time.Duration
	generation uint64 // incremented by every invalidation; guarded by the cache's mu
}

// flightKey is a key with a generation: a call that began before an invalidation must not answer
// one after it.
type flightKey struct {
	key
	generation uint64
	priority   anser.Priority // a call of low priority, which may be shed, must not answer one of high priority
}

// Stats holds the counters of a Cache since its creation, and its present size.
type Stats struct {
	Hits      int64 // answered by an entry, including Stale
	Stale     int64 // answered by an expired entry during its refresh
	Misses    int64 // not answered by an entry, including Joined
	Joined    int64 // answered by an equal call in flight
	Skipped   int64 // not cacheable: messages that cannot be copied, credentials, or too large a request
	Stored    int64
	TooLarge  int64 // replies over MaxEntry
	Evicted   int64 // removed for lack of space
	Refreshes int64 // calls in the background
	Failed    int64 // refreshes with an error that is not cached
	Entries   int
	Bytes     int64
}

// New returns a Cache. It fails for invalid options.
func New(opts ...Option) (*Cache, error) {
	c := &Cache{o: defaults()}
	if err := c.o.apply(opts); err != nil {
		return nil, err
	}
	c.store = newStore(c.o.entries, c.o.bytes)
	return c, nil
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Entries, s.Bytes, s.Evicted = c.store.len(), c.store.bytes, c.store.evicted
	return s
}

// Close cancels the calls that fill the cache and waits for them. Later calls can use existing
// entries, but their replies are not cached. It may be called more than once.
func (c *Cache) Close() error {
	c.flights.Close()
	return nil
}

// Forget drops the entries of a method. Calls that begin afterwards do not get replies of earlier
// requests.
func (c *Cache) Forget(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.o.methods[method]
	if m == nil {
		return
	}
	m.generation++
	c.store.removeIf(func(e *entry) bool { return e.method == m })
}

// ForgetRequest drops the entries of a method for requests equal to request, whatever their
// metadata, and returns their number. request has the type that callers of the method pass. The
// error means that it could not be encoded.
func (c *Cache) ForgetRequest(method string, request any) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.o.methods[method]
	if m == nil {
		return 0, nil
	}
	m.generation++ // a call in flight may have this request
	var encoded [256][]byte
	var errs []error
	n := c.store.removeIf(func(e *entry) bool {
		if e.method != m {
			return false
		}
		id := e.codec.ID()
		if encoded[id] == nil {
			b, err := share.Append([]byte{}, e.codec, request)
			if err != nil {
				errs = append(errs, err)
			}
			encoded[id] = b
		}
		return len(errs) == 0 && e.text[e.request:] == string(encoded[id])
	})
	return n, errors.Join(errs...)
}

// Clear drops everything.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.o.methods {
		m.generation++
	}
	c.store.removeIf(func(*entry) bool { return true })
}

// Intercept implements [anser.Interceptor]: pass anser.Intercept(c.Intercept) to Dial or
// NewServer. On a server it must come after the interceptors that authorize calls.
func (c *Cache) Intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		m := c.o.methods[inv.Method]
		if m == nil {
			return next(ctx, inv)
		}
		return c.call(ctx, inv, m, next)
	}
}

// asked is a call with its key, in a reused buffer.
type asked struct {
	inv     *anser.Invocation
	method  *method
	codec   codec.Codec
	reply   reflect.Type // nil on the server
	text    []byte
	request int // offset of the request in text
}

func (c *Cache) call(ctx context.Context, inv *anser.Invocation, m *method, next anser.Func) error {
	a := asked{inv: inv, method: m, codec: inv.Codec()}
	buf, _ := c.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	ok := c.identify(ctx, &a, (*buf)[:0])
	if !ok {
		c.count(func(s *Stats) { s.Skipped++ })
		return next(ctx, inv)
	}
	found, state, generation := c.look(&a)
	if state == fresh {
		c.keep(buf, a.text)
		return found.Give(inv)
	}
	// From here on the call costs a round trip or a handler, and the text outlives the buffer.
	k := flightKey{key{a.reply, string(a.text)}, generation, anser.PriorityFrom(ctx)}
	request := slices.Clone(a.text[a.request:])
	c.keep(buf, a.text)
	a.text = nil
	if state == stale {
		c.refresh(ctx, a, k, request, next)
		return found.Give(inv)
	}
	r, joined, err := share.Do(ctx, &c.flights, k, inv, func() flight.Work[*share.Result] {
		if r := c.peek(k); r != nil { // it was in flight when this call looked, and ended before this one started
			return func(context.Context) *share.Result { return r }
		}
		return c.fetch(a, k, request, next)
	})
	if joined {
		c.count(func(s *Stats) { s.Joined++ })
	}
	switch {
	case err != nil:
		return err
	case r == nil || r.Alone:
		return next(ctx, inv)
	}
	return r.Give(inv)
}

// keep returns a buffer to the pool.
func (c *Cache) keep(buf *[]byte, b []byte) {
	if cap(b) <= maxKept {
		*buf = b
		c.buffers.Put(buf)
	}
}

// maxKept is the size of the largest buffer that is kept for the next call.
const maxKept = 64 << 10

func (c *Cache) count(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.stats)
}

// identify computes the key of a call. It reports false for a call that must not be cached.
func (c *Cache) identify(ctx context.Context, a *asked, b []byte) bool {
	if a.codec == nil || !share.Sharable(a.inv) {
		return false
	}
	b = append(b, a.codec.ID())
	b = appendText(b, a.method.name)
	if c.o.partition != nil {
		part, ok := c.o.partition(ctx)
		if !ok {
			return false
		}
		b = appendText(b, part)
	}
	var md anser.Metadata
	if a.inv.Server {
		md = anser.MetadataFrom(ctx)
	} else {
		md = anser.OutgoingMetadata(ctx)
		a.reply = reflect.TypeOf(a.inv.Reply)
	}
	if len(md) > 0 {
		for _, k := range credentials {
			if _, ok := md[k]; ok && !slices.Contains(c.o.vary, k) {
				return false
			}
		}
	}
	for _, k := range c.o.vary {
		v, ok := md[k]
		if !ok {
			b = append(b, 0)
			continue
		}
		b = appendText(append(b, 1), v)
	}
	a.request = len(b)
	whole, err := share.Append(b, a.codec, a.inv.Request)
	a.text = whole
	return err == nil && int64(len(whole))+overhead <= c.o.entry
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// The results of look.
type state uint8

const (
	missing state = iota
	fresh
	stale
)

// look returns the entry of a call, if there is a usable one.
func (c *Cache) look(a *asked) (r share.Result, s state, generation uint64) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.store.get(a.reply, a.text)
	switch {
	case e == nil:
	case now.Before(e.ends):
		s = fresh
	case now.Before(e.gone):
		s = stale
		c.stats.Stale++
	default:
		c.store.remove(e)
		e = nil
	}
	generation = a.method.generation
	if e == nil {
		c.stats.Misses++
		return share.Result{}, missing, generation
	}
	c.stats.Hits++
	return e.result(), s, generation
}

// peek returns the fresh entry of a key, or nil, without counting.
func (c *Cache) peek(k flightKey) *share.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.store.entries[k.key]
	if e == nil || e.method.generation != k.generation || !time.Now().Before(e.ends) {
		return nil
	}
	return new(e.result())
}

// fetch returns the work that makes the call and stores its reply.
func (c *Cache) fetch(a asked, k flightKey, request []byte, next anser.Func) flight.Work[*share.Result] {
	call := share.Prepare(a.inv, a.codec, request, next)
	e := &entry{key: k.key, method: a.method, codec: a.codec, request: a.request}
	return func(ctx context.Context) *share.Result {
		r := call(ctx)
		c.put(e, k.generation, r)
		return r
	}
}

// put stores a result, unless it must not be cached or the method was invalidated since the call
// began.
func (c *Cache) put(e *entry, generation uint64, r *share.Result) {
	ttl, stale := e.method.ttl, c.o.stale
	switch {
	case r.Alone:
		c.count(func(s *Stats) { s.Skipped++ })
		return
	case r.Err != nil && !c.negative(r.Err), r.Err == nil && r.Type == nil:
		return
	case r.Err != nil:
		e.err, ttl, stale = r.Err, c.o.negative, 0
	}
	e.replyType, e.reply = r.Type, r.Reply
	if c.o.jitter > 0 {
		ttl -= time.Duration(float64(ttl) * c.o.jitter * rand.Float64())
	}
	e.ends = time.Now().Add(ttl)
	e.gone = e.ends.Add(stale)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.method.generation != generation:
	case e.size() > c.o.entry:
		c.stats.TooLarge++
		c.store.drop(e.key) // an older entry is no longer valid
	default:
		c.store.put(e)
		c.stats.Stored++
	}
}

// negative reports whether an error may be cached: a handler returned it, with one of the codes.
func (c *Cache) negative(err error) bool {
	if len(c.o.codes) == 0 || !slices.Contains(c.o.codes, anser.CodeOf(err)) {
		return false
	}
	e, ok := errors.AsType[*anser.Error](err)
	return !ok || e.Outcome == anser.Executed // any other error comes from a handler
}

const (
	refreshBound  = 10 * time.Second // timeout of a call in the background
	maxRefreshing = 64               // concurrent calls in the background
)

// refresh gets a new reply in the background, unless that is in progress or too many are.
func (c *Cache) refresh(ctx context.Context, a asked, k flightKey, request []byte, next anser.Func) {
	c.mu.Lock()
	busy := c.refreshing >= maxRefreshing
	if !busy {
		c.refreshing++
	}
	c.mu.Unlock()
	if busy {
		return
	}
	started := c.flights.Start(ctx, k, refreshBound, func() flight.Work[*share.Result] {
		fetch := c.fetch(a, k, request, next)
		return func(ctx context.Context) *share.Result {
			failed := true
			defer func() {
				if p := recover(); p != nil { // there is no caller to receive it
					c.o.log.Error("a call that refreshes an entry of the cache panicked", "method", a.method.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				}
				c.count(func(s *Stats) {
					c.refreshing--
					s.Refreshes++
					if failed {
						s.Failed++
					}
				})
			}()
			r := fetch(ctx)
			failed = r.Alone || r.Err != nil && !c.negative(r.Err)
			return r
		}
	})
	if !started {
		c.count(func(*Stats) { c.refreshing-- })
	}
}
