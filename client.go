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
	"github.com/anser-rpc/anser/internal/gain"
	"github.com/anser-rpc/anser/internal/lastknown"
	"github.com/anser-rpc/anser/internal/loglimit"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/nameplace"
	"github.com/anser-rpc/anser/internal/redact"
	"github.com/anser-rpc/anser/internal/retrybudget"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// Client calls the methods of one service, or of the servers at a list of addresses. Create it
// with [Dial], share it between goroutines, and keep it: its connections are shared with the other
// clients of the process.
type Client struct {
	o             dialOptions
	target        string // without a password
	observed      string // target that observers are told
	chain         Func   // interceptors around invoke; nil without interceptors and without a router
	codecs        []fittingCodec
	plain         *msgpack.Codec // for what none of these fits
	pool          *pool
	cluster       *instances
	budget        *retrybudget.Budget
	ignored       atomic.Int64 // calls with the mode Failsafe that failed
	ignoredSeen   loglimit.Seldom
	later         failbacks
	source        source
	balancer      string         // name of the balancer
	router        Router         // nil: no router
	routerContext *RouterContext // passed to the router
	methods       knownMethods
	places        [nameplace.Count]atomic.Pointer[clientMethod] // methods found without the map: the first one at each place
	watches       contextWatches                                // for calls without a goroutine
	startingLater chan struct{}                                 // one slot per call that has a goroutine until it gets a connection
	ctx           context.Context                               // ends with Close
	cancel        context.CancelFunc
	wg            sync.WaitGroup
	reported      bool // the observers know the client; written by Dial

	mu      sync.Mutex // guards the fields below
	closed  bool
	streams map[*stream]struct{} // the open streams
}

// clientMethod is the client's state for one method.
type clientMethod struct {
	methodName
	learned atomic.Bool           // the server declared the method idempotent
	health  methodHealth          // of the method at the instances
	gains   gain.Table            // of compressing the method's requests
	hedge   atomic.Pointer[hedge] // of calls with the mode Backup, or nil

	measures []measure // of observers
}

// mayRunTwice reports whether a call may run more than once, at any instances. One with an
// idempotency key must not, also if the method is idempotent (docs/protocol.md, section 12b).
func (m *clientMethod) mayRunTwice(o *callOptions) bool {
	return !o.keyed && (o.idempotent || m.learned.Load())
}

// Dial returns a client for the target: "host:port", "tcp://a:1,b:2", "tls://a:1,b:2",
// "unix:///path", "file:///path/service", or, with the corresponding option, the scheme of a
// registry or of a [Transport], such as "etcd://127.0.0.1:2379/arith" and "quic://a:1,b:2". With
// tls://, the client needs no [TLS] option if it trusts the system's certificate authorities. Dial
// neither connects nor waits: it fails only if the target or an option cannot work. Connections
// are made when calls need them. Close the client when it is no longer used.
func Dial(target string, opts ...DialOption) (*Client, error) {
	name := redact.Target(target)
	c := &Client{target: name, observed: name}
	c.o = defaultDialOptions()
	c.o.made = callerOf()
	for _, opt := range opts {
		if err := c.o.apply(opt); err != nil {
			return nil, err
		}
	}
	if c.o.call.mistake != nil {
		c.o.mistakes = append(c.o.mistakes, c.o.call.mistake)
	}
	if len(c.o.mistakes) > 0 {
		return nil, fmt.Errorf("dial %q: %w", name, errors.Join(c.o.mistakes...))
	}
	src, err := parseTarget(target, c.o.schemes, c.o.transports)
	if err != nil && name != target {
		return nil, errors.New(redact.URLs(err.Error())) // not wrapped: the cause has the password
	}
	if err != nil {
		return nil, err
	}
	if c.o.handlers != nil {
		if err := c.o.handlers.attach(); err != nil {
			return nil, fmt.Errorf("dial %q: %w", name, err)
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
			return nil, fmt.Errorf("dial %q: %w", name, err)
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
			if o == nil { // an interceptor created inv; without options, invoke would run the interceptors again
				o = &c.o.call
			}
			if o.oneway {
				return c.send(ctx, inv.Method, inv.Request, o, nil)
			}
			return c.invoke(ctx, inv.Method, inv.Request, inv.Reply, o, nil)
		})
	}
	if src.resolver == nil {
		c.fix(src.fixed)
		c.observeMade()
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
	c.observeMade()
	return c, nil
}

// init prepares the parts that every client has, from the options that are set.
func (c *Client) init() {
	for _, cd := range append(slices.Clip(c.o.codecs), sharedProtobuf, codec.Raw{}, codec.Binary{}) {
		if f, ok := cd.(codec.Fitter); ok {
			c.codecs = append(c.codecs, fittingCodec{cd, f})
		}
	}
	c.o.call.bounded = false // the timeout of the client is for calls without a deadline
	c.plain = sharedMsgpack
	c.budget = retrybudget.New(c.o.budgetRatio, c.o.budgetRate)
	c.startingLater = make(chan struct{}, maxStartingLater)
	c.streams = make(map[*stream]struct{})
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if c.o.balancer != nil { // nil for a session
		c.balancer = c.o.balancer.Name()
	}
	c.cluster = c.newCluster()
	c.later.init(c)
}

// acquire returns the host for an address, with this client's options.
func (c *Client) acquire(address string) *host {
	r := c.o.route(address)
	log := c.o.log
	if c.o.credentials == nil {
		log = nil // a logger must not keep clients apart
	}
	return c.pool.acquire(hostOptions{
		credentials: c.o.credentials, inTheClear: c.o.inTheClear, secure: r.secure, log: log,
		network: r.network, address: r.address, tls: r.tls, maxMessage: c.o.maxMessage,
		connectTimeout: c.o.connectTimeout, maxExpansion: c.o.maxExpansion, handshakeTimeout: c.o.handshakeTimeout,
		keepaliveOptions: c.o.keepaliveOptions,
		streamWindow:     c.o.streamWindow, connWindow: c.o.connWindow, windowsGrow: c.o.windowsGrow,
		idleTimeout: c.o.idleTimeout, checksums: c.o.checksums, streamsApart: r.streamsApart, wrapper: r.wrapper, handlers: c.o.handlers, observers: c.o.observers,
	}, r.conns, r.dial)
}

// Call calls the method with the message in, and stores the reply in out, a non-nil pointer. The
// package function [Call] is the typed form. The error is an [*Error], or the error that an
// [Interceptor] returned.
//
// Call returns when the reply has arrived, when ctx is done, or when the call has finally failed.
// out is not written after Call has returned; after an error its content is undefined. in must not
// be changed before Call has returned, and belongs to the caller again afterwards.
func (c *Client) Call(ctx context.Context, method string, in, out any, opts ...CallOption) error {
	return c.invoke(ctx, method, in, out, nil, opts)
}

// runInterceptors makes a call through the interceptors, whose panics become errors of the call.
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

// callState is a call after its first attempt, or one that has not begun yet (k is nil).
type callState struct {
	k     *call
	o     *callOptions
	m     *clientMethod
	codec codec.Codec
	e     *endpoint // of the attempt, or nil if there was none to pick
	fault *Error    // of the attempt

	followed *followedCall // that observers follow, or nil
	by       *answer       // gets the attempt that was answered, or nil
	observe  noticing
}

// begin makes the first attempt of a call, which is nearly always the last, and returns when its
// reply has arrived. The caller then calls answer, or perform if begin made no attempt. begin
// looks only at the type of out: a message allocated after begin has returned is in the caches
// when the reply is decoded into it. With 1,000 callers, memory used before the wait has left the
// caches by then.
//
// begin is one function because callers wait for their replies here, and the garbage collector
// walks all frames of all waiting goroutines: with 1,000 callers, four more frames cost 5 % of the
// client's time. Rare cases are in separate functions that are not inlined, as in all functions on
// the path of a call: the less of its stack a caller uses, the less must come back into the caches
// after the wait. See decision 31.
//
// o is nil before the interceptors have run, and set after them. The caller ends the call with
// x.end, and goes on with the context x.context.
func (c *Client) begin(ctx context.Context, x *callState, name string, in, out any, o *callOptions, opts []CallOption) error {
	if o == nil {
		if ctx == nil || !c.exists() {
			return c.usable(ctx, name)
		}
		o = &c.o.call
		if len(opts) > 0 {
			o = o.with(opts)
		}
		around := o.mode == Failsafe || o.mode == Failback || c.intercepts(name)
		if w := c.o.observers; w.followCalls() {
			if x.observe = measured; w.follows || around || o.special() {
				ctx = c.beginFollowed(ctx, x, name)
			}
		}
		if around {
			x.o = o
			return nil
		}
	}
	m, err := c.method(name)
	if err != nil {
		return err
	}
	k := c.pool.getCall()
	k.began = mono.Now()
	k.traced = o.traced
	k.lends = !o.special()
	if x.mayFollow(c.o.observers) {
		ctx = c.observe(ctx, x, k, name)
	}
	codec, fault := c.encode(ctx, k, m, in, out, o)
	if fault != nil {
		if o.trailer != nil {
			*o.trailer = nil
		}
		c.pool.putCall(k)
		fault.Method = name
		return fault
	}
	c.budget.Deposit(k.slot)
	x.k, x.o, x.m, x.codec = k, o, m, codec
	if o.special() {
		return nil
	}
	e := c.pick(k, m)
	x.e = e
	if e != nil {
		var conn *callerHalf
		if conn, fault = k.start(ctx, e, m); fault == nil {
			if k.patient && conn.isRead() {
				<-k.done
				fault = k.failed
			} else {
				fault = conn.wait(ctx, k)
			}
			fault = k.settle(e, conn, m, fault)
		}
		x.fault = fault
	}
	return nil
}

// complete completes a call that begin started: it decodes the reply into out, or makes the
// remaining attempts. fresh reports that out is zero and that nothing else refers to it.
func (c *Client) complete(ctx context.Context, x *callState, out any, fresh bool) error {
	k, o, e, fault := x.k, x.o, x.e, x.fault
	if o.special() {
		return c.invokeSpecial(ctx, k, newAttempts(c, x, out))
	}
	k.fresh = fresh
	if fault == nil && e != nil {
		fault = k.decode(e, x.codec, out)
	}
	if fault != nil || e == nil {
		if x.observe == measured {
			c.followLate(x)
		}
		fault = newAttempts(c, x, out).run(ctx, k, e, fault)
	} else if x.observe == measured {
		c.measure(ctx, x)
	} else if o.inv != nil || x.by != nil {
		noteAnswer(o, x.by, k, e, 0)
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

// invoke carries out a call whose reply goes to out, a message of the caller. o is as in begin.
func (c *Client) invoke(ctx context.Context, name string, in, out any, o *callOptions, opts []CallOption) error {
	var x callState
	if err := c.begin(ctx, &x, name, in, out, o, opts); err != nil {
		return x.end(ctx, c, name, err)
	}
	var err error
	if x.k == nil {
		err = c.callWithMode(x.context(ctx), name, in, out, x.o, x.by)
	} else {
		err = c.complete(x.context(ctx), &x, out, false)
	}
	return x.end(ctx, c, name, err)
}

// method returns the client's state for a method, from its first call on.
func (c *Client) method(name string) (*clientMethod, error) {
	place := &c.places[nameplace.Of(name)]
	if m := place.Load(); m != nil && m.name == name {
		return m, nil
	}
	if m := c.methods.get(name); m != nil {
		return m, nil
	}
	if err := wire.CheckMethodName(name); err != nil {
		return nil, failure(InvalidArgument, NotSent, PhaseEncode, err, "%v", err)
	}
	m := c.methods.add(name, c.pool, c.o.observers.measuresOf(CallKind{Method: name, Target: c.observed}))
	if m.health.Index != maxKnownMethods {
		place.CompareAndSwap(nil, m)
	}
	return m, nil
}

// serviceName returns the name of the service for errors and logs.
func (c *Client) serviceName() string {
	if c.source.service == "" {
		return c.target
	}
	if r, ok := c.source.resolver.(registry.Namer); ok {
		return r.NameOf(c.source.service)
	}
	return c.source.service
}

// Close ends the client. Its streams are cancelled; calls in flight on connections that no other
// client uses end with an error. Calls that wait for a retry in the background have the time that
// [FailbackLimits] sets. Close waits for the client's goroutines and may be called more than once.
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
		c.cluster.Join()
		return nil
	}
	c.later.drain()
	c.endStreams()
	c.cancel()
	c.cluster.Close()
	var err error
	if c.source.closer != nil {
		err = c.source.closer.Close()
	}
	c.wg.Wait()
	c.cluster.Join()
	if c.reported {
		c.o.observers.ended(c)
	}
	return err
}

// exists reports whether the client was created by Dial, or for a session.
func (c *Client) exists() bool { return c != nil && c.cluster != nil }

// usable returns an error for a nil or zero client, and for a nil context.
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

// Instances waits until the client has a list of instances, and returns the instances that a call
// could go to, sorted by key, whether they are reachable or not. An empty list is an error.
func (c *Client) Instances(ctx context.Context) ([]registry.Instance, error) {
	if err := c.usable(ctx, ""); err != nil {
		return nil, err
	}
	if _, fault := c.awaitView(ctx); fault != nil {
		return nil, fault
	}
	var list []registry.Instance
	for _, in := range c.cluster.Status().Instances {
		list = append(list, in.Instance)
	}
	if len(list) == 0 {
		return nil, c.noInstance(nil)
	}
	return list, nil
}
