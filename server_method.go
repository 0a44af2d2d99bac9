package anser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/gain"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/placement"
	"github.com/anser-rpc/anser/internal/striped"
	"github.com/anser-rpc/anser/wire"
)

// runMode says on which goroutine a method runs.
type runMode uint8

const (
	runLearned runMode = iota
	runInline
	runConcurrent
)

// method is one entry of a server's table.
//
// What calls write is apart from what they only read, which would otherwise leave the caches of
// other processors with each call.
type method struct {
	// Used by few calls.
	request reflect.Type
	reply   reflect.Type
	// Of a dynamic method: its schema, or nil, and the name that it has there, or "" for its own.
	source       *contract.Source
	contractName string
	contract     *methodContract // nil without a schema

	// Read by calls.
	name       string // canonical
	newRequest func() any
	handle     func(ctx context.Context, in any) (any, error)
	converse   func(ctx context.Context, st anyStream) error // of a stream method, which has no handle
	chain      Func                                          // interceptors around either; nil without interceptors
	sampled    Func                                          // the same with those of samplers; nil without samplers
	samplers   samplers
	in, out    *elements // of a method with tuples
	idempotent bool
	once       bool // duplicates get the stored reply
	oneway     bool // all calls of it are oneway
	mode       runMode
	only       *codecSet   // nil: all of the server's
	own        codec.Codec // that its messages bring, or nil
	builtin    bool
	foreign    bool          // only other protocols call it
	takesKeys  bool          // its handler sees to idempotency keys itself
	limits     *methodLimits // nil: nothing limits its calls
	measures   []measure     // of observers; not of a stream method
	sides      sides         // of a stream method
	largeReply atomic.Bool   // the last reply was large; kept for observers
	large      atomic.Bool   // a reply was counted for MaxMemory
	listed     atomic.Bool   // its calls are forwarded, and one was answered
	_          [64]byte

	// Written by calls.
	placement placement.Learner
	gains     gain.Table // of compressing its replies
	calls     striped.Counter
	failed    atomic.Int64
	refused   atomic.Int64
}

// alias is a further name of a method.
type alias struct {
	method     *method
	deprecated bool
	uses       atomic.Int64
}

// Handle serves the method name with h. Names have the form "Service.Method". Request and reply
// can be of any type that one of the server's codecs handles: structs, protobuf messages, []byte.
//
// h owns the request that it gets. The reply must not be changed after h has returned, even much
// later: a large reply of bytes is written from the memory of h, which may take long. A nil reply
// without an error is an Internal error, unless the reply type is [None]. The context ends when the
// caller cancels, its deadline passes, its connection is lost, or h has returned.
//
// Handle returns an error for a type that no codec of the server can carry, such as one with a
// field of type error or chan, and names the field. [OnlyCodecs] restricts the codecs.
//
// Methods may be added at any time and from several goroutines. A server that already serves
// accepts calls of the method from then on, also on existing connections. Before that, Serve and
// ListenAndServe also return an error of Handle, so that it need not be checked here.
func Handle[A, R any](s *Server, name string, h func(ctx context.Context, in *A) (*R, error), opts ...HandleOption) error {
	if h == nil {
		return s.refuseMethod(errNilHandler(name))
	}
	return s.add(opts, &method{
		name:       name,
		newRequest: func() any { return new(A) },
		handle: func(ctx context.Context, in any) (any, error) {
			out, err := h(ctx, in.(*A))
			if err != nil {
				return nil, err
			}
			if out == nil {
				return nilReply[R]()
			}
			return out, nil
		},
		request: reflect.TypeFor[A](),
		reply:   reflect.TypeFor[R](),
	})
}

func errNilHandler(name string) error {
	return fmt.Errorf("method %q has no handler: the function is nil", name)
}

var errNilReply = &Error{Code: Internal, Outcome: Executed, Message: "the handler returned neither a reply nor an error"}

// nilReply returns the result of a handler that returned nil without an error, which is allowed
// only for None.
func nilReply[R any]() (any, error) {
	if none, ok := any(new(R)).(*None); ok {
		return none, nil
	}
	return nil, errNilReply
}

// add adds methods to the server, all of them or none. They may be added while it serves.
func (s *Server) add(opts []HandleOption, list ...*method) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.exchange(nil, opts, list); err != nil {
		return s.refuseMethod(err)
	}
	return nil
}

// replace adds methods in place of those with the names in remove, which are foreign.
func (s *Server) replace(remove []string, opts []HandleOption, list ...*method) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.exchange(remove, opts, list)
}

// exchange removes and adds methods.
func (s *Server) exchange(remove []string, opts []HandleOption, list []*method) error {
	entries := make([]entry, len(list))
	for i, m := range list {
		o, err := s.prepare(m, opts)
		if err != nil {
			return err
		}
		entries[i] = entry{m, o}
	}
	if err := s.table.check(remove, entries); err != nil {
		return err
	}
	for _, m := range list {
		if m.builtin {
			continue
		}
		if err := s.o.observers.methodAdded(m.name); err != nil {
			return err
		}
	}
	return s.table.enter(remove, entries, s.newMethodLimits)
}

// prepare applies the options to a method, and wraps it in the interceptors.
func (s *Server) prepare(m *method, opts []HandleOption) (*handleOptions, error) {
	o := new(handleOptions)
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("method %q has an option that is nil", m.name)
		}
		opt.applyHandle(o)
	}
	o.idempotent = o.idempotent || m.idempotent
	m.idempotent, m.mode, m.only, m.once = o.idempotent, o.mode, o.only, (o.once || s.o.once) && !m.takesKeys
	if m.converse != nil && o.once {
		return nil, fmt.Errorf("method %q is a stream, whose calls have no idempotency keys: leave anser.Deduplicate out", m.name)
	}
	if m.converse != nil && (o.idempotent || o.mode == runInline) {
		return nil, fmt.Errorf("method %q is a stream, which is never opened again by itself and never runs inline: leave anser.Idempotent and anser.Inline out", m.name)
	}
	if o.adaptive != nil && (m.converse != nil || o.mode == runInline) {
		return nil, fmt.Errorf("method %q cannot have an adaptive limit: streams last as long as they want, and with anser.Inline nothing waits: use anser.MaxInFlight", m.name)
	}
	if len(o.mistakes) > 0 {
		return nil, fmt.Errorf("method %q: %w", m.name, errors.Join(o.mistakes...))
	}
	if err := m.nameParams(o.params); err != nil {
		return nil, err
	}
	if o.sides != (sides{}) {
		m.sides = o.sides
	}
	if m.converse != nil && m.sides == (sides{}) {
		m.sides = sides{client: true, server: true}
	}
	if err := m.bindContract(cmp.Or(m.source, o.contract)); err != nil {
		return nil, fmt.Errorf("method %q: %w", m.name, err)
	}
	m.own = m.findOwnCodec()
	if err := s.checkTypes(m); err != nil {
		return nil, fmt.Errorf("method %q: %w", m.name, err)
	}
	if !m.builtin {
		m.wrap(s.o.interceptors, s.o.samplers)
	}
	if m.converse == nil {
		m.measures = s.o.observers.measuresOf(CallKind{Server: true, Method: m.name})
	}
	return o, nil
}

// wrap wraps the method in interceptors.
func (m *method) wrap(interceptors []Interceptor, samplers samplers) {
	if len(interceptors)+len(samplers) == 0 {
		return
	}
	last := func(ctx context.Context, inv *Invocation) (err error) {
		if m.converse != nil {
			return m.streamWith(ctx, inv)
		}
		inv.Reply, err = m.handle(ctx, inv.Request)
		return err
	}
	if len(interceptors) > 0 {
		m.chain = chain(interceptors, last)
	}
	if len(samplers) > 0 {
		m.samplers, m.sampled = samplers, samplers.around(chain(interceptors, last))
	}
}

// interceptors returns the interceptors for one call, or nil, and which samplers want it.
func (m *method) interceptors() (f Func, sampled uint8) {
	if m.samplers != nil {
		if sampled = m.samplers.chosen(m.name); sampled != 0 {
			return m.sampled, sampled
		}
	}
	return m.chain, 0
}

// nameInContract returns the name that the method has in its schema.
func (m *method) nameInContract() string { return cmp.Or(m.contractName, m.name) }

func checkName(name string, builtin bool) error {
	if err := wire.CheckMethodName(name); err != nil {
		var broken *wire.Error
		errors.As(err, &broken)
		return fmt.Errorf("%s: use a name such as \"Arith.Mul\"", broken.Text)
	}
	if i := strings.LastIndexByte(name, '.'); i <= 0 || i == len(name)-1 {
		return fmt.Errorf("method name %q has not the form Service.Method: use a name such as \"Arith.Mul\"", name)
	}
	if strings.HasPrefix(name, builtinPrefix) && !builtin {
		return fmt.Errorf("method name %q begins with %q, which belongs to the protocol: use another name", name, builtinPrefix)
	}
	return nil
}

const builtinPrefix = "Anser."

// refuseMethod returns err, and stores it for Serve if the server does not serve yet.
func (s *Server) refuseMethod(err error) error {
	if bad := s.usable(); bad != nil {
		return bad
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serving {
		s.mistakes = append(s.mistakes, err)
	}
	return err
}

// run calls the handler through the interceptors.
func (m *method) run(ctx context.Context, in any) (any, error) {
	if m.chain == nil && m.samplers == nil {
		return m.handle(ctx, in)
	}
	return m.runIntercepted(ctx, in)
}

func (m *method) runIntercepted(ctx context.Context, in any) (any, error) {
	chain, sampled := m.interceptors()
	if chain == nil {
		return m.handle(ctx, in)
	}
	inv := &Invocation{Method: m.name, Request: in, Server: true, sampled: sampled}
	if c := callFrom(ctx); c != nil {
		inv.side, inv.Oneway = c, c.oneway
	}
	if err := chain(ctx, inv); err != nil {
		return nil, err
	}
	if inv.Reply == nil {
		return nil, errNilReply
	}
	return inv.Reply, nil
}

// inline reports whether the method may run on the reader goroutine.
func (m *method) inline(now mono.Time) bool {
	switch m.mode {
	case runInline:
		return true
	case runConcurrent:
		return false
	}
	return m.placement.Inline(now)
}

// end ends a timed run. It learns nothing where the mode is fixed; see [placement.Learner.End].
func (m *method) end(r *placement.Run, now mono.Time, handedOff bool) {
	if m.mode == runLearned {
		m.placement.End(r, now, m.calls.Load, handedOff)
	}
}

// checkTypes returns an error if no codec in which the method may be called can carry its messages.
// A codec that cannot tell without a value counts as one that can.
func (s *Server) checkTypes(m *method) error {
	if m.in != nil || m.builtin || m.foreign { // elements of tuples are checked one by one
		return nil
	}
	if m.own != nil && (m.only == nil || m.only[m.own.ID()]) {
		return nil
	}
	request, reply := reflect.New(m.request).Interface(), reflect.New(m.reply).Interface()
	var why []error
	for id, c := range s.codecs {
		if c == nil || m.only != nil && !m.only[id] {
			continue
		}
		err := misfit(c, request, reply)
		if err == nil {
			return nil
		}
		why = append(why, err)
	}
	return errors.Join(append([]error{fmt.Errorf("no codec of the server can carry a request of type %s with a reply of type %s", m.request, m.reply)}, reasons(why)...)...)
}

// findOwnCodec returns the codec that the method's messages bring, or nil.
func (m *method) findOwnCodec() codec.Codec {
	if m.in != nil || m.builtin || m.foreign {
		return nil
	}
	var reply any
	if !m.oneway {
		reply = reflect.New(m.reply).Interface()
	}
	return ownCodec(reflect.New(m.request).Interface(), reply)
}

// codec returns the codec with the number for calls of m, or nil.
func (s *Server) codec(m *method, number uint8) codec.Codec {
	if c := s.codecs[number]; c != nil || m.own == nil || m.own.ID() != number {
		return c
	}
	return m.own
}
