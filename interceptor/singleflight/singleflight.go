// Package singleflight combines equal calls that a client has in flight at the same time into one.
package singleflight

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/interceptor/internal/flight"
	"github.com/anser-rpc/anser/interceptor/internal/share"
	"github.com/anser-rpc/anser/wire"
)

// Group is an interceptor for clients: a call of one of its methods is not sent if an equal one is
// in flight, but gets that call's reply. All methods are safe for concurrent use.
//
// Calls are equal if they have the same method, codec, type of reply, bytes of the request,
// priority and metadata (see [Ignore]). The order of map entries in a request does not matter if
// the codec is a [codec.Canonical] or JSON; with another codec such calls may count as different.
//
// Each caller keeps its own deadline and cancellation. The shared call continues while any caller
// waits, has the timeout of its first caller but no less than the client's [anser.Timeout], and is
// cancelled when the last one has left. Other properties of the first caller's context and options
// (trace, fail mode, attempts) apply to all.
//
// Each caller gets a copy of the reply and of the trailers, or the error, which is the same value
// for all. A panic of an inner interceptor is raised in all callers. The rare messages that change
// when they are encoded and decoded are not shared; neither are calls without a reply, or streams.
type Group struct {
	methods map[string]bool
	ignored map[string]bool
	flights flight.Group[key, *share.Result]
	buffers sync.Pool // of *[]byte
	alone   sync.Map  // of bool by messages: types that cannot be copied

	calls, joined, passed atomic.Int64
}

type key struct {
	reply reflect.Type
	text  string
}

type messages struct{ request, reply reflect.Type }

// Stats counts the calls of a Group's methods.
type Stats struct {
	Calls  int64 // all of them
	Joined int64 // answered by a call in flight
	Alone  int64 // could not be shared
}

// Option configures a Group.
type Option func(*Group) error

// Methods adds the methods whose calls are shared; at least one is required. They should only
// read: two calls that are meant to run twice would run once.
func Methods(names ...string) Option {
	return func(g *Group) error {
		for _, name := range names {
			if err := wire.CheckMethodName(name); err != nil {
				return fmt.Errorf("singleflight.Methods: %w", err)
			}
			g.methods[name] = true
		}
		return nil
	}
}

// Ignore adds metadata keys that do not make calls different, such as a request ID. The shared
// call has the values of its first caller. By default all metadata counts, so that no caller gets
// a reply for another one's credentials.
func Ignore(keys ...string) Option {
	return func(g *Group) error {
		for _, k := range keys {
			g.ignored[strings.ToLower(k)] = true
		}
		return nil
	}
}

// New returns a Group. It fails for invalid options.
func New(opts ...Option) (*Group, error) {
	g := &Group{methods: make(map[string]bool), ignored: make(map[string]bool)}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("singleflight.New: an option is nil"))
			continue
		}
		errs = append(errs, opt(g))
	}
	if len(g.methods) == 0 {
		errs = append(errs, errors.New("singleflight.New: no method is named: add singleflight.Methods(\"Service.Method\")"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return g, nil
}

// Stats returns the counters.
func (g *Group) Stats() Stats {
	return Stats{Calls: g.calls.Load(), Joined: g.joined.Load(), Alone: g.passed.Load()}
}

// Close cancels the shared calls and waits for them; later calls are not shared. It may be called
// more than once.
func (g *Group) Close() error {
	g.flights.Close()
	return nil
}

// Intercept implements [anser.Interceptor]: pass anser.Intercept(g.Intercept) to Dial. On a server
// it refuses the calls of its methods, as it does not know which callers may share a reply there.
func (g *Group) Intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		if !g.methods[inv.Method] {
			return next(ctx, inv)
		}
		if inv.Server {
			return anser.Refuse(anser.Internal, "interceptor/singleflight is for clients: give it to anser.Dial, and use interceptor/cache on a server").WithRetryAfter(anser.RetryNever)
		}
		g.calls.Add(1)
		return g.call(ctx, inv, next)
	}
}

func (g *Group) call(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
	cd := inv.Codec()
	types := messages{reflect.TypeOf(inv.Request), reflect.TypeOf(inv.Reply)}
	if _, alone := g.alone.Load(types); alone || cd == nil || !share.Sharable(inv) {
		return g.pass(ctx, inv, next)
	}
	buf, _ := g.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	head := g.appendHead((*buf)[:0], ctx, inv.Method, cd)
	whole, err := share.Append(head, cd, inv.Request)
	if err != nil {
		return next(ctx, inv) // which returns the error, unless only the canonical encoding has failed
	}
	k := key{types.reply, string(whole)}
	*buf = whole
	if cap(whole) <= maxKept {
		g.buffers.Put(buf)
	}
	request := k.text[len(head):]
	r, joined, err := share.Do(ctx, &g.flights, k, inv, func() flight.Work[*share.Result] {
		return share.Prepare(inv, cd, []byte(request), next)
	})
	switch {
	case err != nil:
		return err
	case r == nil:
		return g.pass(ctx, inv, next)
	case r.Alone:
		g.alone.Store(types, true)
		return g.pass(ctx, inv, next)
	}
	if joined {
		g.joined.Add(1)
	}
	return r.Give(inv)
}

// maxKept is the size of the largest buffer that is kept for the next call.
const maxKept = 64 << 10

// pass makes a call that is not shared.
func (g *Group) pass(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
	g.passed.Add(1)
	return next(ctx, inv)
}

// appendHead appends everything that distinguishes a call, except its messages.
func (g *Group) appendHead(b []byte, ctx context.Context, method string, cd codec.Codec) []byte {
	b = append(b, cd.ID(), byte(anser.PriorityFrom(ctx)))
	b = appendText(b, method)
	md := anser.OutgoingMetadata(ctx)
	maps.DeleteFunc(md, func(k, _ string) bool { return g.ignored[k] })
	b = binary.AppendUvarint(b, uint64(len(md)))
	if len(md) > 0 {
		for _, k := range slices.Sorted(maps.Keys(md)) {
			b = appendText(appendText(b, k), md[k])
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
