package anser

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/internal/gain"
	"github.com/anser-rpc/anser/internal/lastknown"
	"github.com/anser-rpc/anser/internal/retrybudget"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// Client calls the methods of one service, or of whatever listens at a list of addresses. Make one
// with [Dial], share it between goroutines, and keep it: its connections are shared with the other
// clients of the process.
type Client struct {
	o             dialOptions
	target        string
	chain         Func // interceptors around invoke; nil without interceptors and without a router
	codecs        []fittingCodec
	pool          *pool
	cluster       *cluster
	budget        *retrybudget.Budget
	ignored       atomic.Int64 // calls with the mode Failsafe that failed
	later         failbacks
	source        source
	router        Router         // nil: none
	routerContext *RouterContext // of the router
	methods       knownMethods
	places        [methodPlaces]atomic.Pointer[clientMethod]
	watches       contextWatches  // of calls without a goroutine
	startingLater chan struct{}   // a place for each of those that have one until a connection stands
	ctx           context.Context // ends with Close
	cancel        context.CancelFunc
	wg            sync.WaitGroup

	mu      sync.Mutex // guards what follows
	closed  bool
	streams map[*stream]struct{} // that are open
}

// clientMethod is what a client knows of a method.
type clientMethod struct {
	name    string
	number  uint32                // in the pool; maxNumberedMethods: it has none
	index   int                   // among those of the client; maxKnownMethods: it is not kept
	learned atomic.Bool           // the server declared it idempotent
	view    atomic.Pointer[view]  // without instances whose breakers are open; nil where there are none
	trial   probe                 // of a breaker that is half open
	gains   gain.Table            // of compressing its requests
	hedge   atomic.Pointer[hedge] // of its calls with the mode Backup, or nil
}

// methodPlaces is the number of methods that are found without the map: the first one at each place.
const methodPlaces = 64

// methodPlace spreads names by their lengths and last bytes, where those of one service differ.
func methodPlace(name string) int {
	n := len(name)
	if n < 2 {
		return n
	}
	return (n + 7*int(name[n-1]) + 31*int(name[n-2])) % methodPlaces
}

func (m *clientMethod) idempotent(o *callOptions) bool { return o.idempotent || m.learned.Load() }

// Dial returns a client for the target: "host:port", "tcp://a:1,b:2", "tls://a:1,b:2", "unix:///path",
// "file:///path/service", or with the option for it the scheme of a registry or of a [Transport], such as
// "etcd://127.0.0.1:2379/arith" and "quic://a:1,b:2". With tls:// the client needs no option [TLS] if it
// trusts the authorities of the system. Dial does not connect and does not wait: it fails only for a target or option
// that cannot work. Connections are made when calls need them. Close the client when it is no longer used.
func Dial(target string, opts ...DialOption) (*Client, error) {
	c := &Client{target: target}
	c.o = defaultDialOptions()
	for _, opt := range opts {
		if err := c.o.apply(opt); err != nil {
			return nil, err
		}
	}
	if c.o.call.mistake != nil {
		c.o.mistakes = append(c.o.mistakes, c.o.call.mistake)
	}
	if len(c.o.mistakes) > 0 {
		return nil, fmt.Errorf("dial %q: %w", target, errors.Join(c.o.mistakes...))
	}
	src, err := parseTarget(target, c.o.schemes, c.o.transports)
	if err != nil {
		return nil, err
	}
	if c.o.handlers != nil {
		if err := c.o.handlers.attach(); err != nil {
			return nil, fmt.Errorf("dial %q: %w", target, err)
		}
	}
	c.source = src
	c.pool = &shared
	if c.o.dialer != nil || c.o.observers != nil || len(c.o.transports) > 0 {
		c.pool = new(pool)
	}
	c.init()
	inside := slices.Clip(c.o.interceptors)
	if c.o.newRouter != nil {
		if err := c.startRouter(); err != nil {
			c.Close()
			return nil, fmt.Errorf("dial %q: %w", target, err)
		}
		inside = append(inside, c.router.Intercept)
	}
	if len(inside) > 0 {
		c.chain = chain(inside, func(ctx context.Context, inv *Invocation) error {
			if inv.Stream {
				if inv.stream == nil {
					return errForeignStream
				}
				return inv.stream(ctx, inv)
			}
			o := inv.options
			if o == nil { // an interceptor made inv; without options invoke would begin with the interceptors
				o = &c.o.call
			}
			if o.oneway {
				return c.send(ctx, inv.Method, inv.Request, o)
			}
			return c.invoke(ctx, inv.Method, inv.Request, inv.Reply, o, nil)
		})
	}
	if src.resolver == nil {
		c.fix(src.fixed)
		return c, nil
	}
	snap := new(lastknown.File)
	if !c.o.noSnapshot && src.key != "" {
		if snap, err = lastknown.New(c.o.snapshotDir, src.key); err != nil {
			c.o.log.Warn(err.Error())
		}
	}
	c.wg.Go(func() { c.follow(src, snap) })
	if store := c.unfollowedRules(); store != nil {
		c.wg.Go(func() { c.lookForRules(store) })
	}
	return c, nil
}

// init prepares what every client has, with the options that are set.
func (c *Client) init() {
	for _, cd := range append(slices.Clip(c.o.codecs), protobuf.New(), codec.Raw{}, codec.Binary{}, msgpack.New()) {
		if f, ok := cd.(codec.Fitter); ok {
			c.codecs = append(c.codecs, fittingCodec{cd, f})
		}
	}
	c.budget = retrybudget.New(c.o.budgetRatio, c.o.budgetRate)
	c.startingLater = make(chan struct{}, maxStartingLater)
	c.streams = make(map[*stream]struct{})
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.cluster = newCluster(c)
	c.later.init(c)
}

// acquire returns the host of an address, with this client's options.
func (c *Client) acquire(address string) *host {
	r := c.o.route(address)
	log := c.o.log
	if c.o.credentials == nil {
		log = nil // so that it keeps no clients apart
	}
	return c.pool.acquire(hostOptions{
		credentials: c.o.credentials, inTheClear: c.o.inTheClear, secure: r.secure, log: log,
		network: r.network, address: r.address, tls: r.tls, maxMessage: c.o.maxMessage,
		connectTimeout: c.o.connectTimeout, maxExpansion: c.o.maxExpansion, handshakeTimeout: c.o.handshakeTimeout,
		keepaliveOptions: c.o.keepaliveOptions,
		streamWindow:     c.o.streamWindow, connWindow: c.o.connWindow, windowsGrow: c.o.windowsGrow,
		idleTimeout: c.o.idleTimeout, checksums: c.o.checksums, streamsApart: r.streamsApart, handlers: c.o.handlers, observers: c.o.observers,
	}, r.conns, r.dial)
}

// Call calls the method with the message in, and stores the reply in out, a non-nil pointer. The
// package's function [Call] is the typed form. The error is an [*Error], or what an [Interceptor] returned.
//
// Call returns when the reply is there, when ctx is done, or when the call has failed for good. out
// is not written after it has returned; after an error its content is undefined.
func (c *Client) Call(ctx context.Context, method string, in, out any, opts ...CallOption) error {
	return c.invoke(ctx, method, in, out, nil, opts)
}

// runInterceptors makes a call through the interceptors, whose panics are errors of the call.
func (c *Client) runInterceptors(ctx context.Context, inv *Invocation) (err error) {
	method := inv.Method
	defer func() {
		if p := recover(); p != nil {
			id := rand.Text()[:10]
			c.o.log.Error("an interceptor panicked", "method", method, "id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			fault := failure(Internal, OutcomeUnknown, PhaseNone, nil, "an interceptor panicked; the client's log has the details under id %s", id)
			fault.Method = method
			err = fault
		}
	}()
	return c.chain(ctx, inv)
}

// callState is a call after its first attempt, or one that is not begun yet (k is nil).
type callState struct {
	k     *call
	o     *callOptions
	m     *clientMethod
	codec codec.Codec
	e     *endpoint // of the attempt, or nil if there was none to pick
	fault *Error    // of the attempt
}

// begin makes the first attempt of a call, which is the last one of nearly every call, and returns when its reply is
// there; answer follows, or perform where it has made none. Of out it looks at the type only: where the message is made
// after ask has returned, its memory is in the caches when the reply is decoded into it. With 1,000 callers, what was there
// before the wait is not any more.
//
// It is one function because this is where callers wait for their replies, and the garbage collector walks over all
// frames of all that wait: with 1,000 callers four frames more are 5 % of the client's time. What is rare is in functions
// of its own that are not inlined, as in all others that a call goes through: the less of its stack a caller uses,
// the less of it has to come back into the caches after the wait. See decision 31.
//
// o is nil on the way in, and set behind the interceptors.
func (c *Client) begin(ctx context.Context, x *callState, name string, in, out any, o *callOptions, opts []CallOption) error {
	if o == nil {
		if ctx == nil || !c.exists() {
			return c.usable(ctx, name)
		}
		o = &c.o.call
		if len(opts) > 0 {
			o = o.with(opts)
		}
		if o.mode == Failsafe || o.mode == Failback || c.intercepts(name) {
			x.o = o
			return nil
		}
	}
	m, err := c.method(name)
	if err != nil {
		return err
	}
	k := c.pool.getCall()
	k.began = nanotime()
	codec, fault := c.encode(ctx, k, m, in, out, o)
	if fault != nil {
		if o.trailer != nil {
			*o.trailer = nil
		}
		c.pool.putCall(k)
		fault.Method = name
		return fault
	}
	c.budget.Deposit()
	x.k, x.o, x.m, x.codec = k, o, m, codec
	if o.special() {
		return nil
	}
	e := c.pick(k, m)
	x.e = e
	if e != nil {
		var conn *callerHalf
		if conn, fault = e.start(ctx, k, m); fault == nil {
			if k.patient && conn.isRead() {
				<-k.done
				fault = k.failed
			} else {
				fault = conn.wait(ctx, k)
			}
			fault = e.settle(conn, k, m, fault)
		}
		x.fault = fault
	}
	return nil
}

// complete completes a call that ask began: it decodes the reply into out, or makes the attempts that are missing. fresh
// says that out is zero and nobody else knows it.
func (c *Client) complete(ctx context.Context, x *callState, out any, fresh bool) error {
	k, o, e, fault := x.k, x.o, x.e, x.fault
	if o.special() {
		return c.invokeSpecial(ctx, k, newAttempts(c, x, out))
	}
	k.fresh = fresh
	if fault == nil && e != nil {
		fault = e.decode(x.codec, k, out)
	}
	if fault != nil || e == nil {
		fault = newAttempts(c, x, out).run(ctx, k, e, fault)
	} else if o.inv != nil {
		o.inv.answered(e.Instance().Address, 0)
	}
	if o.trailer != nil {
		*o.trailer = metadataOf(k.trailers)
	}
	c.pool.putCall(k)
	if fault != nil {
		fault.Method = x.m.name
		return fault
	}
	return nil
}

// invoke carries out a call whose reply goes to out, a message of the caller's. o is as in ask.
func (c *Client) invoke(ctx context.Context, name string, in, out any, o *callOptions, opts []CallOption) error {
	var x callState
	if err := c.begin(ctx, &x, name, in, out, o, opts); err != nil {
		return err
	}
	if x.k == nil {
		return c.callWithMode(ctx, name, in, out, x.o)
	}
	return c.complete(ctx, &x, out, false)
}

// method returns what the client knows of a method, from its first call on.
func (c *Client) method(name string) (*clientMethod, error) {
	place := &c.places[methodPlace(name)]
	if m := place.Load(); m != nil && m.name == name {
		return m, nil
	}
	if m := c.methods.get(name); m != nil {
		return m, nil
	}
	if err := wire.CheckMethodName(name); err != nil {
		return nil, failure(InvalidArgument, NotSent, PhaseEncode, err, "%v", err)
	}
	m := c.methods.add(name, c.pool)
	if m.index != maxKnownMethods {
		place.CompareAndSwap(nil, m)
	}
	return m, nil
}

func (c *Client) serviceName() string {
	if c.source.service != "" {
		return c.source.service
	}
	return c.target
}

// Close ends the client. Its streams are cancelled; calls that are in flight on connections that no other
// client uses end with an error. Calls that wait to be tried again in the background have until
// [FailbackLimits] say. Close waits for the client's goroutines and may be called more than once.
func (c *Client) Close() error {
	if err := c.usable(context.Background(), ""); err != nil {
		return err
	}
	c.mu.Lock()
	was := c.closed
	c.closed = true
	c.mu.Unlock()
	if was {
		c.wg.Wait()
		return nil
	}
	c.later.drain()
	c.endStreams()
	c.cancel()
	c.cluster.close()
	var err error
	if c.source.closer != nil {
		err = c.source.closer.Close()
	}
	c.wg.Wait()
	return err
}

// exists reports whether the client was made by Dial, or for a session.
func (c *Client) exists() bool { return c != nil && c.cluster != nil }

// usable returns an error for a client that is nil or the zero value, and for a context that is nil.
//
//go:noinline
func (c *Client) usable(ctx context.Context, method string) error {
	var fault *Error
	switch {
	case !c.exists():
		fault = failure(InvalidArgument, NotSent, PhaseNone, nil, "the client is nil or was not made by anser.Dial")
	case ctx == nil:
		fault = failure(InvalidArgument, NotSent, PhaseNone, nil, "the context is nil: pass context.Background()")
	default:
		return nil
	}
	fault.Method = method
	return fault
}

// Instances waits until the client has a list of instances, and returns those that a call could go to, sorted
// by key, be they reachable or not. That there is none is an error.
func (c *Client) Instances(ctx context.Context) ([]registry.Instance, error) {
	if err := c.usable(ctx, ""); err != nil {
		return nil, err
	}
	if _, fault := c.cluster.wait(ctx); fault != nil {
		return nil, fault
	}
	var list []registry.Instance
	for _, in := range c.cluster.status().Instances {
		list = append(list, in.Instance)
	}
	if len(list) == 0 {
		return nil, c.noInstance(nil)
	}
	return list, nil
}
