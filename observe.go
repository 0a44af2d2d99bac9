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

// An Observer is told what happens where an [Interceptor] does not reach: connections, messages on their
// way, methods, and the registry. Fields that are nil are left out. Functions are called where the thing
// happens and hold it up while they run, so they should be fast; several run at the same time.
//
// Several observers are told in the order of the options. After an error of one, the others are not asked.
type Observer struct {
	// ConnOpened is told of a connection before the first call goes over it. An error refuses it: a
	// server answers the client's handshake with CLOSE and the error's text, a client closes it and tries
	// again later, as if it could not be made.
	ConnOpened func(c ConnInfo) error
	// ConnClosed is told of the end of a connection that all observers accepted. err says what ended it;
	// it is nil if that was one of the two sides, in order.
	ConnClosed func(c ConnInfo, err error)
	// ConnFailed is told of a connection that did not come about: not made, broken in its handshake, or
	// refused.
	ConnFailed func(c ConnInfo, err error)

	// Request is told of a request before it is sent, on the client for each attempt, and on the server
	// after it arrived and was admitted, before it is decoded. An error refuses the attempt or call: it
	// does not run. One that is not an [*Error] has the code PermissionDenied. On the server, ctx is the
	// handler's: [PeerFrom], [MetadataFrom] and [TraceFrom] say more.
	Request func(ctx context.Context, m MessageInfo) error
	// Reply is told of the answer: on the client after that of an attempt arrived, or the attempt failed
	// without one, and before it is decoded; on the server after it was encoded, and before it is sent. It is told
	// once for each Request of which all observers approved. A oneway call has none, unless a client could
	// not send it. Of a stream, Request is told of the opening, with its first message, and Reply of its end.
	Reply func(ctx context.Context, m MessageInfo)

	// MethodAdded is told of a method that is added to a server. An error refuses it, and Serve
	// returns it.
	MethodAdded func(name string) error
	// Announced is told of each try of a server to enter itself into a registry: with a nil err it is
	// registered.
	Announced func(in registry.Instance, err error)
	// Withdrawn is told of the try to take that back when the server stops.
	Withdrawn func(in registry.Instance, err error)

	// Health is told when a client takes an instance out of use or back, as a whole or for one method:
	// see [OutlierDetection] and [Breaker]. Events come one after the other; the function must not close the client.
	Health func(e HealthEvent)
}

// ConnInfo is a connection as an [Observer] sees it.
type ConnInfo struct {
	Server bool // which side this is
	// Address is what a client dialed; empty on a server.
	Address string
	// Peer is the other side. If a client could not connect, its addresses are nil.
	Peer Peer
}

// MessageInfo is a request or its answer as an [Observer] sees it.
type MessageInfo struct {
	Server  bool   // which side this is
	Method  string // canonical on the server
	Address string // of the instance that a client calls; empty on a server
	Attempt int    // from 0
	Codec   uint8  // its number; see package codec
	Bytes   int    // of the message as it travels, encoded and perhaps compressed; 0 for an error
	Err     error  // of an answer: an *Error, or nil
}

// observers are those of a side. It is used through a pointer, which is nil where there are none, so
// that this costs calls one comparison.
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

// request asks the observers whether a request may go on.
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

// HealthChange says what happened to an instance.
type HealthChange uint8

// The changes.
const (
	InstanceEjected  HealthChange = iota // it gets no calls
	InstanceRestored                     // it gets calls again
	BreakerOpened                        // it gets no calls of one method
	BreakerHalfOpen                      // it gets single ones, as probes
	BreakerClosed                        // it gets all again
)

var healthChangeNames = [...]string{"instance ejected", "instance restored", "breaker opened", "breaker half open", "breaker closed"}

// String returns the change in words.
func (h HealthChange) String() string {
	if int(h) < len(healthChangeNames) {
		return healthChangeNames[h]
	}
	return fmt.Sprintf("health change %d", uint8(h))
}

// MarshalText writes the change in words, for JSON and logs.
func (h HealthChange) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// HealthEvent tells an [Observer] what a client makes of an instance.
type HealthEvent struct {
	Change   HealthChange
	Instance registry.Instance
	Method   string    // of a breaker, else empty
	Reason   string    // in words
	Until    time.Time // when the client tries the instance again, if it knows; else zero
}
