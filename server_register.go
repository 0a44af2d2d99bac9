package anser

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"reflect"
	"strings"
)

// Register serves the methods of v, a pointer to a struct, under the name of its type: a method Mul
// of *Arith as "Arith.Mul". See [Server.RegisterName].
func (s *Server) Register(v any, opts ...HandleOption) error {
	t := reflect.TypeOf(v)
	if t == nil {
		return s.refuseMethod(errors.New("register: the service is nil: pass a pointer such as new(Arith)"))
	}
	name := t.Name()
	if t.Kind() == reflect.Pointer {
		name = t.Elem().Name()
	}
	if !token.IsExported(name) {
		return s.refuseMethod(fmt.Errorf("register: type %s is not exported: export it, or use RegisterName", t))
	}
	return s.RegisterName(name, v, opts...)
}

// RegisterName serves the exported methods of v under the names "name.Method". Methods of these
// shapes are served, for exported or builtin argument types:
//
//	func (*T) Method(ctx context.Context, in *Args) (*Reply, error)
//	func (*T) Method(ctx context.Context, in *Args, out *Reply) error
//	func (*T) Method(in *Args, out *Reply) error // net/rpc's; Args need not be a pointer
//
// and methods with any other number of arguments and results, with at least one of either:
//
//	func (*T) Method(ctx context.Context, a A, b B) (C, D, error)
//
// These have a [Tuple] as their request and reply, for which [Params] gives the names; [Bind] makes
// functions that call them. With one argument and one result, neither of them may be a struct by
// value: most likely a pointer was forgotten.
//
// Methods of other shapes are skipped; it is an error if none is left. The options apply to every
// method, so aliases make no sense among them. RegisterName serves either all methods or, with an
// error, none. As with [Handle], a server that already serves takes their calls from then on.
func (s *Server) RegisterName(name string, v any, opts ...HandleOption) error {
	if v == nil {
		return s.refuseMethod(fmt.Errorf("register %q: the service is nil: pass a pointer such as new(Arith)", name))
	}
	value, t := reflect.ValueOf(v), reflect.TypeOf(v)
	var served []*method
	var why []string
	if err := checkParams(t, opts); err != nil {
		return s.refuseMethod(fmt.Errorf("register %q: %w", name, err))
	}
	for i := range t.NumMethod() {
		m, err := reflectMethod(name+"."+t.Method(i).Name, value.Method(i))
		if err == nil && m.in != nil && len(m.in.types)+len(m.out.types) == 0 {
			err = errors.New("it has no argument and no result: to serve it all the same, use RegisterFunc")
		}
		if err != nil {
			why = append(why, fmt.Sprintf("%s: %v", t.Method(i).Name, err))
			continue
		}
		served = append(served, m)
	}
	switch {
	case len(served) > 0:
		return s.add(opts, served...)
	case len(why) > 0:
		return s.refuseMethod(fmt.Errorf("register %q: type %s has no method that can be served: %s", name, t, strings.Join(why, "; ")))
	case t.Kind() != reflect.Pointer && reflect.PointerTo(t).NumMethod() > 0:
		return s.refuseMethod(fmt.Errorf("register %q: type %s has no exported methods, but *%s has: pass a pointer", name, t, t))
	}
	return s.refuseMethod(fmt.Errorf("register %q: type %s has no exported methods", name, t))
}

// RegisterFunc serves a function of one of the shapes of [Server.RegisterName] under any name of
// the form "Service.Method". If the types are known at compile time, [Handle] does the same without
// reflection.
func (s *Server) RegisterFunc(name string, f any, opts ...HandleOption) error {
	v := reflect.ValueOf(f)
	if !v.IsValid() || v.Kind() != reflect.Func || v.IsNil() {
		return s.refuseMethod(fmt.Errorf("register %q: %T is not a function: %s", name, f, shapes))
	}
	m, err := reflectMethod(name, v)
	if err != nil {
		return s.refuseMethod(fmt.Errorf("register %q: %w", name, err))
	}
	return s.add(opts, m)
}

// reflectMethod returns a method that calls f by reflection.
func reflectMethod(name string, f reflect.Value) (*method, error) {
	sig, err := parseSignature(f.Type())
	if err != nil {
		return nil, err
	}
	m := &method{name: name}
	if sig.tuple {
		if m.in, err = newElements("argument", "arg", sig.in); err != nil {
			return nil, err
		}
		if m.out, err = newElements("result", "result", sig.out); err != nil {
			return nil, err
		}
		m.request, m.reply = tupleType, tupleType
		m.newRequest = func() any { return m.in.new() }
		m.handle = tupleHandler(f, m)
		return m, nil
	}
	for _, used := range []reflect.Type{sig.request, sig.reply} {
		if !exportedOrBuiltin(used) {
			return nil, fmt.Errorf("the type %s is not exported", used)
		}
	}
	m.request, m.reply = sig.request, sig.reply
	m.newRequest = func() any { return reflect.New(sig.request).Interface() }
	m.handle = reflectHandler(f, sig.withContext, sig.byPointer, sig.outReply, sig.reply)
	return m, nil
}

// tupleHandler returns a handler that calls f with the elements of a tuple.
func tupleHandler(f reflect.Value, m *method) func(context.Context, any) (any, error) {
	return func(ctx context.Context, in any) (any, error) {
		request := in.(*Tuple)
		args := make([]reflect.Value, 0, 1+len(request.values))
		results := f.Call(append(append(args, reflect.ValueOf(ctx)), request.values...))
		last := len(results) - 1
		if err, _ := results[last].Interface().(error); err != nil {
			return nil, err
		}
		reply := m.out.new()
		reply.object = request.object
		for i, v := range results[:last] {
			reply.values[i].Set(v)
		}
		return reply, nil
	}
}

// reflectHandler returns a handler that calls f; outReply means that f gets the reply to fill in.
func reflectHandler(f reflect.Value, withContext, byPointer, outReply bool, reply reflect.Type) func(context.Context, any) (any, error) {
	return func(ctx context.Context, in any) (any, error) {
		var buf [3]reflect.Value
		args := buf[:0]
		if withContext {
			args = append(args, reflect.ValueOf(ctx))
		}
		arg := reflect.ValueOf(in)
		if !byPointer {
			arg = arg.Elem()
		}
		args = append(args, arg)
		var out reflect.Value
		if outReply {
			out = newReply(reply)
			args = append(args, out)
		}
		results := f.Call(args)
		if err, _ := results[len(results)-1].Interface().(error); err != nil {
			return nil, err
		}
		if !outReply {
			out = results[0]
			if out.IsNil() {
				if reply == noneType {
					return new(None), nil
				}
				return nil, errNilReply
			}
		}
		return out.Interface(), nil
	}
}

// newReply returns a reply for a handler to fill in; like net/rpc it allocates a map or slice.
func newReply(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	switch t.Kind() {
	case reflect.Map:
		v.Elem().Set(reflect.MakeMap(t))
	case reflect.Slice:
		v.Elem().Set(reflect.MakeSlice(t, 0, 0))
	}
	return v
}
