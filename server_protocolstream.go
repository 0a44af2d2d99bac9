package anser

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/mono"
)

// ProtocolStream carries the messages of a stream method over a [ProtocolConn]. Send and Recv may
// be called at the same time as each other and as Stop; the server makes one call of each at a
// time.
type ProtocolStream interface {
	// Send encodes a message, a pointer to the method's reply type, and sends it. It may wait while
	// the client does not read. An error that is no [*Error] is one of the connection, with the
	// code Unavailable.
	Send(msg any) error
	// Recv waits for the next message and decodes it into msg, a pointer to the method's request
	// type, which it resets first. After the last message it returns io.EOF. A message that is too
	// large (see [Server.MaxMessageSize]) or cannot be decoded causes an [*Error].
	Recv(msg any) error
	// Stop makes Send and Recv return why, now if they wait, and in all further calls. It does not
	// wait, and may be called several times.
	Stop(why *Error)
}

// MethodType describes a method that a server serves.
type MethodType struct {
	// Name is the canonical name.
	Name string
	// Request and Reply are the types of the messages, without pointers.
	Request, Reply reflect.Type
	// Stream says that the method is a stream. ClientStream and ServerStream tell which sides send
	// any number of messages.
	Stream, ClientStream, ServerStream bool
	// Oneway says that the method has no reply; see [Send].
	Oneway bool
	// Idempotent says that a call may be repeated; see [Idempotent].
	Idempotent bool
	// Only are the numbers of the codecs in which the method may be called, sorted; nil means all.
	// See [OnlyCodecs].
	Only []uint8
	// Arguments and Results describe the elements of messages of type [Tuple], which is the type
	// of Request and Reply then.
	Arguments, Results []TupleElement
	// Deduplicates says that a call with an idempotency key runs once; see [Deduplicate].
	Deduplicates bool
	// Contract is the method's contract, or nil; see [Contract].
	Contract *contract.Source
	// ContractName is the name of the method in its contract, which can differ for methods of
	// [Server.HandleDynamic]; "" without a contract.
	ContractName string
	// Doc is the comment of the method in its contract, and Deprecated what the contract says.
	Doc        string
	Deprecated bool

	in, out *elements // of a method with tuples
}

// Method returns the type of the method with this name, which may be an alias. ok is false if the
// server does not serve it, or it is one of the methods that are built in.
func (s *Server) Method(name string) (t MethodType, ok bool) {
	if s.usable() != nil {
		return MethodType{}, false
	}
	m, _ := s.table.find(name, true)
	if m == nil {
		return MethodType{}, false
	}
	return m.methodType(), true
}

// Methods returns the types of all methods by their canonical names, which are sorted.
func (s *Server) Methods() []MethodType {
	if s.usable() != nil {
		return nil
	}
	var list []MethodType
	s.table.each(func(_ string, m *method, a *alias) {
		if a == nil && !m.builtin {
			list = append(list, m.methodType())
		}
	})
	return list
}

// MethodsVersion returns a number that grows when methods are added, so that a protocol knows when
// what it has derived from Methods is out of date.
func (s *Server) MethodsVersion() uint64 {
	if s.usable() != nil {
		return 0
	}
	return s.table.version.Load()
}

// MethodsFor returns the types of the methods that the caller of a handler may call, with the
// handler's context. It is nil for a server with [NoDescribe], and for any other context.
func (s *Server) MethodsFor(ctx context.Context) []MethodType {
	if s.usable() != nil || !s.o.describe || ctx == nil {
		return nil
	}
	k := callFrom(ctx)
	if k == nil || k.conn.server != s {
		return nil
	}
	return k.conn.methods()
}

// methods returns the types of the methods that the client may call.
func (c *calleeHalf) methods() []MethodType {
	s := c.server
	limited := c.auth != nil && s.o.authorizer != nil
	return slices.DeleteFunc(s.Methods(), func(m MethodType) bool { return limited && !s.allows(c.identity(), m.Name) })
}

// Methods returns the types of the methods that the client may call now, for a protocol that
// describes them to its clients. They are none for a server with [NoDescribe]. The error is
// Unauthenticated for a client without an identity on a server with [Authenticate]; it is shared
// and must not be changed. The [Authorizer] is called for each method.
func (p *ProtocolConn) Methods() ([]MethodType, *Error) {
	c := p.conn
	if c.auth != nil {
		if now := c.auth.now.Load(); now == nil || now.lapsed(mono.Now()) {
			return nil, errLapsed
		}
	}
	if !c.server.Describes() {
		return nil, nil
	}
	return c.methods(), nil
}

// Describes reports whether the server describes its methods to clients: it does without
// [NoDescribe].
func (s *Server) Describes() bool { return s.usable() == nil && s.o.describe }

func (m *method) methodType() MethodType {
	t := MethodType{
		Name: m.name, Request: m.request, Reply: m.reply, Oneway: m.oneway, Idempotent: m.idempotent,
		Deduplicates: (m.once || m.takesKeys) && m.converse == nil && !m.oneway,
		Stream:       m.converse != nil, ClientStream: m.sides.client, ServerStream: m.sides.server,
		in: m.in, out: m.out,
	}
	if m.only != nil {
		for id, ok := range m.only {
			if ok {
				t.Only = append(t.Only, uint8(id))
			}
		}
	}
	t.Arguments, t.Results = m.in.describe(), m.out.describe()
	if c := m.contract; c != nil {
		t.Contract, t.ContractName = c.source, m.nameInContract()
		t.Doc, t.Deprecated = c.method.Doc, c.method.Deprecated || c.service.Deprecated
	}
	return t
}

// RunStream makes the server run the handler of a stream method with the messages of st, and
// returns at once. It is called in place of Run for a request with Stream. respond is called once,
// as for Run, when the handler has returned: its error, if any, and the trailers end the stream.
// The server calls no method of st after that, except Stop.
func (k *ProtocolCall) RunStream(st ProtocolStream, respond func(ProtocolReply) error) {
	if k.stream == nil || st == nil {
		k.misuse("RunStream", respond)
		return
	}
	k.mu.Lock()
	if k.stream.carrier == nil {
		k.stream.carrier = st
	}
	k.mu.Unlock()
	cut, first := k.begin(respond)
	if !first {
		return
	}
	j := newJob(k.ctx, k.arrived)
	j.held, j.refused = k.held, cut
	j.start()
}

// misuse refuses a call that the protocol runs with the wrong function.
func (k *ProtocolCall) misuse(function string, respond func(ProtocolReply) error) {
	name := k.ctx.method.name
	k.conn.conn.server.log.Error("another protocol has called the wrong function for the method", "function", function, "method", name)
	why := refusal(Internal, "the protocol has called %s for method %q: Run is for calls, RunStream for streams", function, name)
	k.Refuse(why)
	if respond != nil {
		respond(ProtocolReply{Err: why})
	}
}

// foreignStream is a stream that another protocol carries, at the side of the handler.
type foreignStream struct {
	carrier ProtocolStream
	ctx     context.Context

	sending sync.Mutex // serializes Send
	taking  sync.Mutex // serializes Recv; guards broken
	broken  error      // result of every further Recv

	mu  sync.Mutex // guards why
	why *Error     // why the stream is over, or nil

	sent, received atomic.Uint64 // messages
	inSend, inRecv atomic.Bool   // whether the carrier's Send and Recv run
}

// fillStatus stores what the stream itself knows.
func (st *foreignStream) fillStatus(out *StreamStatus) {
	out.Sent, out.Received = st.sent.Load(), st.received.Load()
	out.WaitsForConn, out.WaitsForMessage = st.inSend.Load(), st.inRecv.Load()
}

func (st *foreignStream) send(msg any) error {
	st.sending.Lock()
	defer st.sending.Unlock()
	if why := st.over(); why != nil {
		return why
	}
	return st.told(st.give(msg))
}

func (st *foreignStream) give(msg any) error {
	st.inSend.Store(true)
	defer st.inSend.Store(false) // also after a panic of a codec
	err := st.carrier.Send(msg)
	if err == nil {
		st.sent.Add(1)
	}
	return err
}

func (st *foreignStream) recv(msg any, _ bool) error {
	st.taking.Lock()
	defer st.taking.Unlock()
	if st.broken == nil {
		if why := st.over(); why != nil {
			st.broken = why
		} else if err := st.take(msg); err != nil {
			st.broken = st.told(err)
		}
	}
	return st.broken
}

func (st *foreignStream) take(msg any) error {
	st.inRecv.Store(true)
	defer st.inRecv.Store(false) // also after a panic of a codec
	err := st.carrier.Recv(msg)
	if err == nil {
		st.received.Add(1)
	}
	return err
}

// told returns an error of the carrier as one for the handler.
func (st *foreignStream) told(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if why := st.over(); why != nil {
		return why
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return failure(Unavailable, OutcomeUnknown, PhaseNone, err, "the connection was lost: %v", err)
}

func (st *foreignStream) over() *Error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.why
}

func (st *foreignStream) stop(why error) {
	e, ok := errors.AsType[*Error](why)
	if !ok {
		e = failure(Canceled, OutcomeUnknown, PhaseNone, why, "the stream has ended: %v", why)
	}
	st.mu.Lock()
	if st.why == nil {
		st.why = e
	}
	e = st.why
	st.mu.Unlock()
	st.carrier.Stop(e)
}

func (st *foreignStream) closeSendOfClient() error {
	return failure(FailedPrecondition, OutcomeUnknown, PhaseNone, nil, "a handler ends its stream by returning, not with CloseSend")
}

func (st *foreignStream) closeOfClient() error {
	return failure(FailedPrecondition, OutcomeUnknown, PhaseNone, nil, "a handler ends its stream by returning, not with Close")
}

func (st *foreignStream) trailer() Metadata { return nil }

func (st *foreignStream) widen(int64) {}

func (st *foreignStream) context() context.Context { return st.ctx }

func (st *foreignStream) setContext(ctx context.Context) { st.ctx = ctx }

// openForeign counts a stream that another protocol carries, unless a limit is reached.
func (c *calleeHalf) openForeign() *Error {
	srv := c.server
	if srv.o.maxStreams == 0 {
		return refusal(Unimplemented, "the server offers no streams (anser.MaxStreams)")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streaming >= srv.o.maxStreams {
		return over(limitStreams, "the connection is at its limit of %d streams (anser.MaxStreams)", srv.o.maxStreams)
	}
	c.streaming++
	srv.streams.Add(1)
	return nil
}

// closeForeign counts that such a stream has ended.
func (c *calleeHalf) closeForeign() {
	c.mu.Lock()
	c.streaming--
	c.mu.Unlock()
	c.server.streams.Add(-1)
	c.upkeep.Stir()
}

// runForeign runs the handler of a stream that another protocol carries, unless the stream is
// refused, and ends the stream with the result.
func (c *calleeHalf) runForeign(ctx *callContext, st *foreignStream, refused *Error, arrived mono.Time) {
	st.ctx = ctx
	unbind := ctx.AfterFunc(func() { st.stop(streamContextFailure(ctx)) })
	returned := false
	defer func() {
		if !returned { // the handler ends the goroutine, by runtime.Goexit
			appendFault(nil, ctx, errExited)
		}
		unbind()
		st.stop(failure(FailedPrecondition, OutcomeUnknown, PhaseNone, nil, "the handler has returned: its stream is over"))
		c.finishDetached(ctx, nil, lentReply{})
	}()
	if refused != nil {
		appendRefusal(nil, ctx, refused)
	} else {
		c.server.converse(ctx, st, int64(ctx.extras.protocol.size), arrived)
	}
	returned = true
}

// stopStream ends both halves of the call's stream, if it is one.
func (c *callContext) stopStream(why *Error) {
	if st := c.stream(); st != nil {
		st.stop(why)
	}
	if k := c.protocolCall(); k != nil {
		k.mu.Lock()
		running := k.stream != nil && k.stream.carrier != nil
		k.mu.Unlock()
		if running {
			k.stream.stop(why)
		}
	}
}
