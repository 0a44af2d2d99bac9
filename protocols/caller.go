package protocols

import (
	"context"
	"io"
	"net/http"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/protocontract"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

// Caller calls methods of the server for the client of an HTTP request: with its identity, metadata
// and deadline, and under the policies, limits, interceptors and observers of all calls. It is for
// handlers of [Handler] that speak a protocol of their own. Its methods are safe for concurrent use
// while the handler of the request runs.
type Caller struct {
	methods *exchange.Directory
	request *http.Request
	conn    *anser.ProtocolConn
}

type directoryKey struct{}

// withDirectory gives the requests of a handler what CallerOf needs.
func withDirectory(d *exchange.Directory, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), directoryKey{}, d)))
	})
}

// CallerOf returns the caller for a request that came to a handler of [Handler]. The error is an
// [*anser.Error]: the server does not know the credential of the client, or needs one.
// [WriteError] answers with it.
func CallerOf(r *http.Request) (*Caller, error) {
	d, _ := r.Context().Value(directoryKey{}).(*exchange.Directory)
	h := host.FromContext(r.Context())
	if d == nil || h == nil {
		return nil, anser.Errorf(anser.Internal, "the request is none of a handler of protocols.Handler")
	}
	conn, fault := h.Login(r.Header.Get("Authorization"))
	if fault != nil {
		return nil, fault
	}
	return &Caller{d, r, conn}, nil
}

// Server returns the server.
func (c *Caller) Server() *anser.Server { return c.methods.Server() }

// Methods returns the methods that the client may call, or the error that it needs a credential.
func (c *Caller) Methods() ([]anser.MethodType, error) {
	list, fault := c.conn.Methods()
	if fault != nil {
		return nil, fault
	}
	return list, nil
}

// Count counts a list of methods that the client has asked for as a call of Anser.Methods, and
// returns an error if a limit of the server refuses it; see [anser.ProtocolConn.ListMethods].
func (c *Caller) Count() error {
	if _, fault := c.conn.ListMethods(); fault != nil {
		return fault
	}
	return nil
}

// Schema returns the contract of a method: see [anser.MethodType.Schema]. That of a method with
// protobuf messages and no contract is made from their descriptors. It is nil for a method that is
// not called in JSON.
func (c *Caller) Schema(t *anser.MethodType) *contract.Schema {
	m := c.methods.FindName(t.Name)
	if m == nil || !m.InJSON() {
		return nil
	}
	if s := t.Schema(); s != nil || m.Descriptor == nil {
		return s
	}
	d, ok := m.Descriptor.Parent().(protoreflect.ServiceDescriptor)
	if !ok {
		return nil
	}
	return protocontract.FromService(d)
}

// Safe reports whether calls of a method have no effects: its contract says
// "idempotency_level = NO_SIDE_EFFECTS".
func (c *Caller) Safe(t *anser.MethodType) bool {
	m := c.methods.FindName(t.Name)
	return m != nil && m.Safe
}

// Call calls a method with a message in JSON, and returns its reply in JSON; that of a method
// without a reply is nil. When ctx ends the call is cancelled.
func (c *Caller) Call(ctx context.Context, method string, message []byte) ([]byte, error) {
	m, call, fault := c.prepare(method, message)
	if fault == nil && m.Stream {
		fault = anser.Refuse(anser.InvalidArgument, "the method %s is a stream", method)
	}
	if fault != nil {
		return nil, fault
	}
	reply, _, fault := exchange.Call(ctx, c.conn, call, func(_ *anser.ProtocolCall, into any) ([]byte, *anser.Error) {
		return message, m.Decode(exchange.JSON, message, into)
	})
	if fault != nil {
		return nil, fault
	}
	if reply == nil {
		return nil, nil
	}
	out, fault := m.Encode(exchange.JSON, nil, reply)
	if fault != nil {
		return nil, fault
	}
	return out, nil
}

// Stream calls a method that answers a message with several, and calls each with every one of them
// in JSON; the method waits meanwhile. An error of each ends the stream, and is returned.
func (c *Caller) Stream(ctx context.Context, method string, message []byte, each func(message []byte) error) error {
	m, call, fault := c.prepare(method, message)
	if fault == nil && (!m.Stream || m.ClientStream) {
		fault = anser.Refuse(anser.InvalidArgument, "the method %s is not a stream of the server alone", method)
	}
	if fault != nil {
		return fault
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &callerStream{method: m, message: message, each: each, cancel: cancel}
	_, fault = exchange.Stream(ctx, c.conn, call, s, nil)
	switch {
	case s.ended != nil:
		return s.ended
	case fault != nil:
		return fault
	}
	return nil
}

func (c *Caller) prepare(method string, message []byte) (*exchange.Method, *anser.ProtocolRequest, *anser.Error) {
	m := c.methods.FindName(method)
	switch {
	case m == nil:
		return nil, nil, exchange.NotServed(c.conn, method)
	case m.Own:
		return nil, nil, anser.Refuse(anser.Unimplemented, "method %q is served in protobuf only", method)
	}
	call := &anser.ProtocolRequest{Size: len(message)}
	fault := c.methods.Prepare(call, m, c.request)
	return m, call, fault
}

// callerStream is a stream with one message of the client.
type callerStream struct {
	method  *exchange.Method
	message []byte // nil once it was received
	each    func([]byte) error
	cancel  func()
	ended   error // of each
}

// Recv returns the message of the client.
func (s *callerStream) Recv(msg any) error {
	if s.message == nil {
		return io.EOF
	}
	data := s.message
	s.message = nil
	if fault := s.method.Decode(exchange.JSON, data, msg); fault != nil {
		return fault
	}
	return nil
}

// Send sends a message.
func (s *callerStream) Send(msg any) error {
	if s.ended != nil {
		return anser.Errorf(anser.Canceled, "the client has ended the stream")
	}
	data, fault := s.method.Encode(exchange.JSON, nil, msg)
	if fault != nil {
		return fault
	}
	if s.ended = s.each(data); s.ended != nil {
		s.cancel()
		return anser.Errorf(anser.Canceled, "the client has ended the stream")
	}
	return nil
}

// Stop does nothing: neither Send nor Recv waits for the client.
func (s *callerStream) Stop(*anser.Error) {}
