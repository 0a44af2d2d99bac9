package anser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

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
}

// observers are the observers of a side. It is used through a pointer that is nil if there are
// none, so that they cost a call one comparison.
type observers []Observer

// all returns the observers, or none.
func (w *observers) all() []Observer {
	if w == nil {
		return nil
	}
	return *w
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
