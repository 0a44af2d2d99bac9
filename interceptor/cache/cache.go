// Package cache keeps replies, on a client or on a server, and answers equal calls with them.
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

// Cache is an interceptor that keeps replies. Make one for each client or server: methods are told
// apart by their names alone. All methods are safe for concurrent use.
//
// An entry is found by the method, the codec, the bytes of the request, what [Vary] and [Partition]
// name, and on a client the type of the reply. Of a map in a request the entries may come in any order,
// if the codec is a [codec.Canonical] or JSON; with another codec such calls may miss what is there,
// but none ever gets the reply of another request.
//
// What is kept are bytes: each caller gets a message of its own, which it may change. A reply from the
// cache comes without trailers, address and attempt. Equal calls that miss at the same time become one;
// each keeps its own deadline, and the call goes on while anybody waits for it. Calls without a reply,
// streams, and the rare messages that are different after they were encoded and decoded pass by.
type Cache struct {
	o       options
	flights flight.Group[flightKey, *share.Result]
	buffers sync.Pool // of *[]byte

	mu         sync.Mutex // guards what follows
	store      store
	refreshing int
	stats      Stats
}

// method is what the cache knows of a method.
type method struct {
	name       string
	ttl        time.Duration
	generation uint64 // changed by every invalidation; guarded by the cache's mu
}

// flightKey is a key at a time: what was asked for before an invalidation does not count after it.
type flightKey struct {
	key
	generation uint64
	priority   anser.Priority // what is shed as unimportant is not shared with what matters
}

// Stats is what a Cache has done so far, and what it holds.
type Stats struct {
	Hits      int64 // answered by an entry, Stale included
	Stale     int64 // answered by an entry whose time was over, while a new one was got
	Misses    int64 // that were not, Joined included
	Joined    int64 // answered by an equal call that was in flight
	Skipped   int64 // not cacheable: no copy of the messages, credentials, too large a request
	Stored    int64
	TooLarge  int64 // replies over MaxEntry
	Evicted   int64 // that gave way to others
	Refreshes int64 // in the background
	Failed    int64 // of these, those that got an error that is not kept
	Entries   int
	Bytes     int64
}

// New returns a Cache. It fails for options that cannot work.
func New(opts ...Option) (*Cache, error) {
	c := &Cache{o: defaults()}
	if err := c.o.apply(opts); err != nil {
		return nil, err
	}
	c.store = newStore(c.o.entries, c.o.bytes)
	return c, nil
}

// Stats returns what the cache has done so far.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Entries, s.Bytes, s.Evicted = c.store.len(), c.store.bytes, c.store.evicted
	return s
}

// Close cancels the calls that fill the cache and waits for them. Calls that follow find what is there,
// and are not kept. It may be called more than once.
func (c *Cache) Close() error {
	c.flights.Close()
	return nil
}

// Forget drops what is kept of a method. Calls that begin afterwards get nothing that was asked for before.
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

// ForgetRequest drops what is kept of a method for requests equal to request, whatever metadata they
// came with, and returns how many entries these were. request is what a caller of the method passes.
// An error means that it could not be encoded.
func (c *Cache) ForgetRequest(method string, request any) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.o.methods[method]
	if m == nil {
		return 0, nil
	}
	m.generation++ // a call in flight may be for this request
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

// Intercept is the [anser.Interceptor]: give anser.Intercept(c.Intercept) to Dial or NewServer. On a
// server it belongs behind whatever decides who may call.
func (c *Cache) Intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		m := c.o.methods[inv.Method]
		if m == nil {
			return next(ctx, inv)
		}
		return c.call(ctx, inv, m, next)
	}
}

// asked is a call with its key, as bytes that are used again.
type asked struct {
	inv     *anser.Invocation
	method  *method
	codec   codec.Codec
	reply   reflect.Type // nil on the server
	text    []byte
	request int // where the request begins in text
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
	// From here on the call costs one over the network or a handler, and the text outlives the buffer.
	k := flightKey{key{a.reply, string(a.text)}, generation, anser.PriorityFrom(ctx)}
	request := slices.Clone(a.text[a.request:])
	c.keep(buf, a.text)
	a.text = nil
	if state == stale {
		c.refresh(ctx, a, k, request, next)
		return found.Give(inv)
	}
	r, joined, err := share.Do(ctx, &c.flights, k, inv, func() flight.Work[*share.Result] {
		if r := c.peek(k); r != nil { // it was in flight when this call looked, and came before this one was
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

// keep gives a buffer back.
func (c *Cache) keep(buf *[]byte, b []byte) {
	if cap(b) <= maxKept {
		*buf = b
		c.buffers.Put(buf)
	}
}

// maxKept is how large a buffer may be that is kept for the next call.
const maxKept = 64 << 10

func (c *Cache) count(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.stats)
}

// identify makes the key of a call. It reports false for one that is not to be cached.
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

// What look finds.
type state uint8

const (
	missing state = iota
	fresh
	stale
)

// look returns the entry of a call, if there is one that may be given out.
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

// peek returns what is kept for a key and fresh, or nil, and counts nothing.
func (c *Cache) peek(k flightKey) *share.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.store.entries[k.key]
	if e == nil || e.method.generation != k.generation || !time.Now().Before(e.ends) {
		return nil
	}
	return new(e.result())
}

// fetch returns what gets a reply and keeps it.
func (c *Cache) fetch(a asked, k flightKey, request []byte, next anser.Func) flight.Work[*share.Result] {
	call := share.Prepare(a.inv, a.codec, request, next)
	e := &entry{key: k.key, method: a.method, codec: a.codec, request: a.request}
	return func(ctx context.Context) *share.Result {
		r := call(ctx)
		c.put(e, k.generation, r)
		return r
	}
}

// put keeps a result, unless it is not to be kept or the method was invalidated since it was asked for.
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
		c.store.drop(e.key) // an older one is no longer right
	default:
		c.store.put(e)
		c.stats.Stored++
	}
}

// negative reports whether an error may be kept: a handler returned it, with one of the codes.
func (c *Cache) negative(err error) bool {
	if len(c.o.codes) == 0 || !slices.Contains(c.o.codes, anser.CodeOf(err)) {
		return false
	}
	e, ok := errors.AsType[*anser.Error](err)
	return !ok || e.Outcome == anser.Executed // without an Error it is a handler's
}

const (
	refreshBound  = 10 * time.Second // of a call in the background
	maxRefreshing = 64               // calls in the background
)

// refresh gets a new reply in the background, unless that happens already or many do.
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
				if p := recover(); p != nil { // nobody waits who would tell
					c.o.log.Error("a call that renews an entry of the cache panicked", "method", a.method.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
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
