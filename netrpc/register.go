package netrpc

import (
	"errors"
	"fmt"
	"go/token"
	"maps"
	"reflect"
	"strings"
	"sync/atomic"
)

// names is the set of served methods. It is immutable and replaced as a whole, so that calls find
// their method without a lock.
type names struct {
	methods  map[string]*entry
	services map[string]bool // the part before the last dot; true if it was registered as a whole
}

// entry is one name of a method.
type entry struct {
	method     *method
	alias      bool
	deprecated bool
	uses       atomic.Int64 // of an alias
}

// Register serves the methods of rcvr under the name of its type: a method Mul of *Arith as
// "Arith.Mul". See [Server.RegisterName].
func (s *Server) Register(rcvr any) error {
	if s == nil {
		return s.refused(errNoServer)
	}
	if rcvr == nil {
		return s.refused(errors.New("rpc.Register: the service is nil: pass a pointer such as new(Arith)"))
	}
	t := reflect.TypeOf(rcvr)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := t.Name()
	if name == "" {
		return s.refused(fmt.Errorf("rpc.Register: no service name for type %s: use RegisterName", t))
	}
	if !token.IsExported(name) {
		return s.refused(fmt.Errorf("rpc.Register: type %s is not exported: export it, or use RegisterName", name))
	}
	return s.RegisterName(name, rcvr)
}

// RegisterName serves the exported methods of rcvr under the names "name.Method", if they have one
// of these signatures, with exported or builtin types:
//
//	func (T) Method(in Args, out *Reply) error // net/rpc's; Args may be a pointer
//	func (T) Method(ctx context.Context, in Args, out *Reply) error
//	func (T) Method(ctx context.Context, in Args) (*Reply, error)
//
// Other methods are skipped. It is an error if none is left, or if the name is already registered.
// Methods can be added at any time.
//
// The context ends when the connection is lost, when the context of [Server.Shutdown] has ended,
// and when the method has returned. net/rpc's protocol has no deadlines. [PeerFrom] and
// [IdentityFrom] identify the caller.
//
// Like net/rpc, and unlike the rest of Anser, this logs the error that it returns: programs
// written for net/rpc ignore it.
func (s *Server) RegisterName(name string, rcvr any) error {
	if s == nil {
		return s.refused(errNoServer)
	}
	if rcvr == nil {
		return s.refused(fmt.Errorf("rpc.Register: the service %q is nil: pass a pointer such as new(Arith)", name))
	}
	if name == "" {
		return s.refused(fmt.Errorf("rpc.Register: no service name for type %T", rcvr))
	}
	methods := methodsOf(name, reflect.ValueOf(rcvr))
	if len(methods) == 0 {
		hint := ""
		if t := reflect.TypeOf(rcvr); t.Kind() != reflect.Pointer && len(methodsOf(name, reflect.New(t))) > 0 {
			hint = " (hint: pass a pointer to value of that type)"
		}
		return s.refused(fmt.Errorf("rpc.Register: type %s has no exported methods of suitable type%s: %s", name, hint, shapes))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table().services[name] {
		return s.refused(errors.New("rpc: service already defined: " + name))
	}
	next := s.cloneLocked()
	next.services[name] = true
	for _, m := range methods {
		if next.methods[m.name] != nil {
			return s.refused(errors.New("rpc: method already defined: " + m.name))
		}
		next.methods[m.name] = &entry{method: m}
	}
	if err := s.addLocked(methods...); err != nil {
		return s.refused(err)
	}
	s.served.Store(next)
	return nil
}

// methodsOf returns the methods of v with supported signatures.
func methodsOf(service string, v reflect.Value) []*method {
	var methods []*method
	for i := range v.NumMethod() {
		if m, err := newMethod(service+"."+v.Type().Method(i).Name, v.Method(i)); err == nil {
			methods = append(methods, m)
		}
	}
	return methods
}

// RegisterFunc serves a function with one of the signatures of [Server.RegisterName], or a method
// value, under any name. Names need no dot: both "mul" and "Arith.Mul" are valid.
func (s *Server) RegisterFunc(name string, f any) error {
	if s == nil {
		return s.refused(errNoServer)
	}
	v := reflect.ValueOf(f)
	if !v.IsValid() || v.Kind() != reflect.Func || v.IsNil() {
		return s.refused(fmt.Errorf("rpc.RegisterFunc %q: %T is not a function: %s", name, f, shapes))
	}
	m, err := newMethod(name, v)
	if err != nil {
		return s.refused(fmt.Errorf("rpc.RegisterFunc %q: %w", name, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := s.withLocked(name, &entry{method: m})
	if err != nil {
		return s.refused(err)
	}
	if err := s.addLocked(m); err != nil {
		return s.refused(err)
	}
	s.served.Store(next)
	return nil
}

// Alias adds another name for a registered method. A method may have any number of names.
func (s *Server) Alias(alias, method string) error { return s.alias(alias, method, false) }

// DeprecatedAlias adds another name for a registered method that should no longer be used:
// [Server.Stats] counts its uses.
func (s *Server) DeprecatedAlias(alias, method string) error { return s.alias(alias, method, true) }

func (s *Server) alias(alias, method string, deprecated bool) error {
	if s == nil {
		return s.refused(errNoServer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.table().methods[method]
	if e == nil {
		return s.refused(fmt.Errorf("rpc.Alias %q: there is no method %q: register it first", alias, method))
	}
	next, err := s.withLocked(alias, &entry{method: e.method, alias: true, deprecated: deprecated})
	if err != nil {
		return s.refused(err)
	}
	s.served.Store(next)
	return nil
}

// withLocked returns a copy of the table with one more name.
func (s *Server) withLocked(name string, e *entry) (*names, error) {
	switch {
	case name == "":
		return nil, errors.New("rpc: a method has no name")
	case name == LoginMethod:
		return nil, fmt.Errorf("rpc: the name %q belongs to this package: use another one", name)
	case s.table().methods[name] != nil:
		return nil, errors.New("rpc: method already defined: " + name)
	}
	next := s.cloneLocked()
	next.methods[name] = e
	if i := strings.LastIndexByte(name, '.'); i >= 0 && !next.services[name[:i]] {
		next.services[name[:i]] = false // it can still be registered as a whole
	}
	return next, nil
}

func (s *Server) table() *names {
	if t := s.served.Load(); t != nil {
		return t
	}
	return &names{}
}

func (s *Server) cloneLocked() *names {
	next := &names{methods: make(map[string]*entry), services: make(map[string]bool)}
	maps.Copy(next.methods, s.table().methods)
	maps.Copy(next.services, s.table().services)
	return next
}

// missing returns the error for an unknown method. The texts are net/rpc's, since callers have
// nothing else to detect it.
func (s *Server) missing(name string) string {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return "rpc: service/method request ill-formed: " + name
	}
	if _, ok := s.table().services[name[:dot]]; !ok {
		return "rpc: can't find service " + name
	}
	return "rpc: can't find method " + name
}

// refused logs the error of a registration, and returns it.
func (s *Server) refused(err error) error {
	s.log().Error("rpc: not registered", "err", err)
	return err
}
