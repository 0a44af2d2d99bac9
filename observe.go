package anser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// An Observer is notified of events that an [Interceptor] does not see: connections, messages on
// the wire, methods, and the registry. Nil fields are skipped. The functions are called
// synchronously, so they should be fast; several may run concurrently. They must not close the
// client or shut down the server that calls them, since Close and Shutdown wait for them: another
// goroutine can.
//
// Several observers are called in the order of the options. After an error of one, the others are
// not called.
type Observer struct {
	// ConnOpened is called for a connection before its first call. An error refuses the connection:
	// a server answers the client's handshake with CLOSE and the text of the error; a client closes
	// the connection and tries again later, as if it could not connect.
	ConnOpened func(c ConnInfo) error
	// ConnClosed is called at the end of a connection that all observers accepted. err is the
	// cause, or nil if one of the two sides closed the connection in order.
	ConnClosed func(c ConnInfo, err error)
	// ConnFailed is called for a connection that was not established: it could not be made, its
	// handshake failed, or it was refused.
	ConnFailed func(c ConnInfo, err error)

	// Trace chooses the trace context with which a call continues, in t.Own. t.Parent is what
	// [TraceFrom] returns for ctx, or zero, and may be changed. Trace must not use t after it has
	// returned. It is called before CallBegan, which finds the choice in the CallInfo. A client
	// sends the chosen trace context, unless CallBegan or an interceptor chose another one with
	// [WithTrace]. On a server it is that of the handler's context, but not if the request came
	// over Anser's protocol with neither a trace context nor metadata: there is no memory for it
	// then. Only the first observer with the function is asked.
	Trace func(ctx context.Context, k CallKind, t *TraceChoice)
	// Measure returns the function that measures the calls of a method, or nil. A side calls it
	// when it learns of the method, and calls the function at the end of each ordinary call of it,
	// on the goroutine of the call. For such a call CallBegan is not called, and CallEnded only if
	// the function returns true. All other calls are followed from their beginning and not
	// measured.
	//
	// An ordinary call is unary, came over Anser's protocol, has a reply, and has no idempotency
	// key. On a client it also succeeds at the first attempt, and has neither interceptors nor a
	// mode such as [Backup]; on a server its messages have at most 1 KiB. No call is ordinary if
	// Trace wants it to be followed, or if another observer has CallBegan or CallEnded without
	// Measure.
	//
	// A call that is followed costs several times as much as one that is measured. So an observer
	// that needs little of most calls should have the function. See package telemetry.
	Measure func(k CallKind) func(ctx context.Context, m Measurement) (more bool)
	// CallBegan is called once for a call, and returns the context with which it continues: ctx, or
	// one that is derived from it, for example with a span. On the client that is before the
	// interceptors and all attempts, which get the context. On the server it is before Request, and
	// the handler gets the context. It is not called for calls that a server refuses before that.
	//
	// CallBegan and CallEnded must neither change c nor use it after they have returned: its memory
	// is that of the next call then.
	CallBegan func(ctx context.Context, c *CallInfo) context.Context
	// CallEnded is called once at the end of a call, with the context that CallBegan returned. On
	// the client that is after all attempts, and for a stream after its last message. On the server
	// it is after the reply was encoded and before it is sent. A server also calls it for each call
	// that it refuses, with the context of the call, or with [context.Background] if it was refused
	// before it had one.
	CallEnded func(ctx context.Context, c *CallInfo)

	// Request is called before a request is sent, on the client once per attempt, and on the server
	// after the request was received and admitted, before it is decoded. An error refuses the
	// attempt or call, which does not run; unless it is an [*Error] it has the code
	// PermissionDenied. On the server, ctx is the handler's: see [PeerFrom], [MetadataFrom] and
	// [TraceFrom].
	Request func(ctx context.Context, m MessageInfo) error
	// Reply is called for the answer: on the client after the answer to an attempt arrived, or the
	// attempt failed without one, and before it is decoded; on the server after it was encoded and
	// before it is sent. It is called once per Request that all observers allowed. A oneway call
	// has no Reply, unless a client could not send it. For a stream, Request is called at the
	// opening, with the first message, and Reply at the end.
	Reply func(ctx context.Context, m MessageInfo)

	// MethodAdded is called when a method is added to a server. An error refuses the method, and
	// Serve returns it.
	MethodAdded func(name string) error
	// Announced is called for each attempt of a server to register with a registry; it has
	// succeeded if err is nil.
	Announced func(in registry.Instance, err error)
	// Withdrawn is called for the attempt to deregister when the server stops.
	Withdrawn func(in registry.Instance, err error)

	// Made is called with each new *Server or *Client, by [NewServer] and [Dial]. Ended is called
	// once with it at the end of Shutdown or Close. Clients for the sessions of a server are not
	// reported.
	Made  func(side any)
	Ended func(side any)

	// Health is called when a client takes an instance out of use or back, entirely or for one
	// method: see [OutlierDetection] and [Breaker]. Events are delivered one at a time.
	Health func(e HealthEvent)
}

// ConnInfo describes a connection for an [Observer].
type ConnInfo struct {
	Server bool // true on the server
	// Address is the address that a client dialed; empty on a server.
	Address string
	// Peer is the other side. If a client could not connect, its addresses are nil.
	Peer Peer
}

// CallInfo describes a call for an [Observer]. The times and sizes, Address, Attempt and Err are
// known when the call has ended; a server knows Queue and Attempt from the beginning.
type CallInfo struct {
	Server bool // true on the server
	// Method is canonical on the server. It is "" for a call of a method that the server does not
	// serve, since callers could invent any number of names.
	Method string
	// Target is, on the client, the target that it was dialed with, without the user and the
	// password in it, and "session" for the calls of a server to its clients.
	Target  string
	Stream  bool
	Oneway  bool
	Forward bool // a server forwards the call: see [Forward]
	// Replayed is true on a server for a call that was answered with the reply of an earlier one
	// with the same idempotency key.
	Replayed bool
	// Address is, on the client, that of the instance of the last attempt; "" if there was none.
	Address string
	Attempt int // number of the last attempt, from 0; on the server, of this one
	// Pick says, on the client, why the last attempt went to its instance.
	Pick Pick
	// Attempts are, on the client, the attempts of a call with more than one, oldest first; of a
	// call that succeeded all but the last. They are shared: do not change them.
	Attempts []AttemptInfo
	// Trace and Parent are what Trace of an [Observer] chose; zero without one. A server has no
	// memory for the trace that begins with a call that it does not follow, so both are zero then.
	Trace, Parent Trace
	// Measured is true if the call was not followed, and the function of [Observer.Measure] wanted
	// it to be reported to CallEnded.
	Measured bool

	// Duration is the time of the whole call: on the client from the beginning to the result, on
	// the server from the arrival of the request to the encoded reply. The other times are parts of
	// it, known on the server only. They are 0 for calls that did not run, and for streams and
	// forwarded calls but for Queue.
	Duration time.Duration
	Queue    time.Duration // until the call began to run
	Handle   time.Duration // interceptors and handler
	// Decode and Encode are the times of decoding the request and encoding the reply. For messages
	// up to 1 KiB, and for the first large reply after a small one, they are 0 and part of Handle.
	// For a protocol that decodes before the queue, or encodes later, they are 0.
	Decode, Encode time.Duration

	// Sizes of the messages on the wire, on the server and for a unary call. ReplyBytes is 0 for an
	// error, and for a protocol that encodes replies later.
	RequestBytes, ReplyBytes int
	// Err is the error of the call: nil, or an error whose code and outcome [CodeOf] and
	// [OutcomeOf] return. On the server it is the one that the caller gets. It is shared: do not
	// change it.
	Err error

	began mono.Time // or 0
}

// Began returns when the call began, by the clock as it is set now: on the server when the request
// had arrived. It is meant for observers, while they are called.
func (c *CallInfo) Began() time.Time {
	now := time.Now()
	if c.began == 0 { // a server refused the call
		return now.Add(-c.Duration)
	}
	return now.Add(-mono.Since(c.began))
}

// CallKind describes a call before it begins, or all calls of a method; then only the first three
// fields are set.
type CallKind struct {
	Server bool   // true on the server
	Method string // canonical on the server
	Target string // as in [CallInfo]
	Stream bool
	Oneway bool
}

// TraceChoice is what Trace of an [Observer] chooses for a call.
type TraceChoice struct {
	Own    Trace // with which the call continues
	Parent Trace // of its parent; zero if there is none
	// Follow makes all observers follow the call from its beginning, for example because CallBegan
	// puts something into its context.
	Follow bool
}

// Measurement is what [Observer.Measure] learns of a call. The fields mean what they mean in a
// [CallInfo], whose Handle is what Queue leaves of Duration on a server. There are no more fields
// than registers to pass them in: memory would be slower.
type Measurement struct {
	Duration, Queue          time.Duration
	RequestBytes, ReplyBytes int
	Attempt                  int
	Sampled                  bool   // Trace chose a trace context with the flag "sampled"
	Err                      *Error // nil on a client, whose calls that failed are followed
}

// Pick says why an attempt went to its instance.
type Pick struct {
	Reason   balance.Reason // why the balancer, or the client in its place, chose the instance
	Balancer string         // name of the client's balancer; "" on a server and for a session
	Route    string         // name of the router's choice of instances; "" for all of them
}

// picked is how the instance of the attempt that ended a call was chosen.
type picked struct {
	reason balance.Reason
	route  string        // name of the route
	failed []AttemptInfo // attempts before that one
}

// MessageInfo describes a request or its answer for an [Observer].
type MessageInfo struct {
	Server  bool   // true on the server
	Method  string // canonical on the server
	Address string // address of the instance that a client calls; empty on a server
	Attempt int    // from 0
	Codec   uint8  // number of the codec; see package codec
	// Size of the message on the wire, encoded and possibly compressed; 0 for an error.
	Bytes int
	Err   error // error of an answer: an *Error, or nil
	// Duration is, for an answer on the client, the time since the attempt began; 0 for a stream.
	Duration time.Duration
}

// observers are the observers of a side. It is used through a pointer that is nil if there are
// none, so that they cost a call one comparison.
type observers struct {
	list     []Observer
	calls    bool                                                  // one of them learns of whole calls
	follows  bool                                                  // one of them follows each call from its beginning
	messages bool                                                  // one of them follows requests and replies
	conns    bool                                                  // one of them may refuse connections
	attempts bool                                                  // one of them learns of connections, or of failures to make one
	trace    func(ctx context.Context, k CallKind, t *TraceChoice) // or nil
	measures bool                                                  // they measure calls, and follow only calls that are not ordinary
}

// newObservers returns the observers of old and more, or nil if there are none.
func newObservers(old *observers, more []Observer) *observers {
	w := &observers{list: append(slices.Clone(old.all()), more...)}
	if len(w.list) == 0 {
		return nil
	}
	w.messages = slices.ContainsFunc(w.list, func(o Observer) bool { return o.Request != nil || o.Reply != nil })
	w.conns = slices.ContainsFunc(w.list, func(o Observer) bool { return o.ConnOpened != nil })
	w.attempts = w.conns || slices.ContainsFunc(w.list, func(o Observer) bool { return o.ConnFailed != nil })
	if i := slices.IndexFunc(w.list, func(o Observer) bool { return o.Trace != nil }); i >= 0 {
		w.trace = w.list[i].Trace
	}
	w.calls = slices.ContainsFunc(w.list, func(o Observer) bool {
		return o.CallBegan != nil || o.CallEnded != nil || o.Trace != nil || o.Measure != nil
	})
	w.follows = slices.ContainsFunc(w.list, func(o Observer) bool {
		return o.Measure == nil && (o.CallBegan != nil || o.CallEnded != nil)
	})
	w.measures = w.calls && !w.follows && !w.messages && w.trace == nil
	return w
}

// measure measures calls of a method for an observer.
type measure struct {
	count func(ctx context.Context, m Measurement) (more bool)
	ended func(ctx context.Context, c *CallInfo) // or nil
}

// measuresOf returns what measures the calls of a method.
func (w *observers) measuresOf(k CallKind) (list []measure) {
	for _, o := range w.all() {
		if o.Measure == nil {
			continue
		}
		if f := o.Measure(k); f != nil {
			list = append(list, measure{f, o.CallEnded})
		}
	}
	return list
}

// all returns the observers, or none.
func (w *observers) all() []Observer {
	if w == nil {
		return nil
	}
	return w.list
}

// followCalls reports whether an observer learns of whole calls.
func (w *observers) followCalls() bool { return w != nil && w.calls }

// follow reports whether an observer follows calls or messages.
func (w *observers) follow() bool { return w != nil && (w.calls || w.messages) }

// followMessages reports whether an observer follows requests and replies.
func (w *observers) followMessages() bool { return w != nil && w.messages }

// followConns reports whether an observer learns of connections, which it may refuse.
func (w *observers) followConns() bool { return w != nil && w.conns }

// learnConns reports whether an observer is called while a connection is made.
func (w *observers) learnConns() bool { return w != nil && w.attempts }

// callBegan returns the context with which the call continues.
func (w *observers) callBegan(ctx context.Context, c *CallInfo) context.Context {
	for i := range w.list {
		if f := w.list[i].CallBegan; f != nil {
			if next := f(ctx, c); next != nil {
				ctx = next
			}
		}
	}
	return ctx
}

func (w *observers) callEnded(ctx context.Context, c *CallInfo) {
	for i := range w.list {
		if f := w.list[i].CallEnded; f != nil {
			f(ctx, c)
		}
	}
}

func (w *observers) connOpened(c ConnInfo) error {
	for _, o := range w.all() {
		if f := o.ConnOpened; f != nil {
			if err := f(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *observers) connClosed(c ConnInfo, err error) {
	if len(w.all()) == 0 {
		return
	}
	var end *wire.Error
	if errors.As(err, &end) && end.Reason == wire.Normal || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, errPeerClosed) || errors.Is(err, errConnClosed) {
		err = nil
	}
	for _, o := range w.all() {
		if f := o.ConnClosed; f != nil {
			f(c, err)
		}
	}
}

func (w *observers) connFailed(c ConnInfo, err error) {
	for _, o := range w.all() {
		if f := o.ConnFailed; f != nil {
			f(c, err)
		}
	}
}

// request returns an error if an observer refuses the request.
func (w *observers) request(ctx context.Context, m MessageInfo) *Error {
	for _, o := range w.all() {
		f := o.Request
		if f == nil {
			continue
		}
		if err := f(ctx, m); err != nil {
			if e, ok := errors.AsType[*Error](err); ok {
				own := *e
				return &own
			}
			return &Error{Code: PermissionDenied, Message: err.Error(), cause: err}
		}
	}
	return nil
}

func (w *observers) reply(ctx context.Context, m MessageInfo) {
	for _, o := range w.all() {
		if f := o.Reply; f != nil {
			f(ctx, m)
		}
	}
}

// made reports a new side.
func (w *observers) made(side any) {
	for _, o := range w.all() {
		if f := o.Made; f != nil {
			f(side)
		}
	}
}

// ended reports a side that has ended.
func (w *observers) ended(side any) {
	for _, o := range w.all() {
		if f := o.Ended; f != nil {
			f(side)
		}
	}
}

func (w *observers) methodAdded(name string) error {
	for _, o := range w.all() {
		if f := o.MethodAdded; f != nil {
			if err := f(name); err != nil {
				return fmt.Errorf("method %q is refused: %w", name, err)
			}
		}
	}
	return nil
}

func (w *observers) announced(in registry.Instance, err error) {
	for _, o := range w.all() {
		if f := o.Announced; f != nil {
			f(in, err)
		}
	}
}

func (w *observers) withdrawn(in registry.Instance, err error) {
	for _, o := range w.all() {
		if f := o.Withdrawn; f != nil {
			f(in, err)
		}
	}
}

// asError returns e as an error that is nil if e is.
func asError(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}

// HealthChange is a change of the health of an instance.
type HealthChange uint8

// The changes.
const (
	InstanceEjected  HealthChange = iota // the instance gets no calls
	InstanceRestored                     // the instance gets calls again
	BreakerOpened                        // the instance gets no calls of one method
	BreakerHalfOpen                      // the instance gets single calls of the method, as probes
	BreakerClosed                        // the instance gets all calls of the method again
)

var healthChangeNames = [...]string{"instance ejected", "instance restored", "breaker opened", "breaker half open", "breaker closed"}

// String returns the change in words.
func (h HealthChange) String() string {
	if int(h) < len(healthChangeNames) {
		return healthChangeNames[h]
	}
	return fmt.Sprintf("health change %d", uint8(h))
}

// MarshalText returns the change in words, for JSON and logs.
func (h HealthChange) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// HealthEvent reports a change of the health of an instance to an [Observer].
type HealthEvent struct {
	Change   HealthChange
	Instance registry.Instance
	Method   string    // method of a breaker, otherwise empty
	Reason   string    // reason in words
	Until    time.Time // when the client tries the instance again, or zero if unknown
}
