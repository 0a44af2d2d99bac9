package gofile

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

const anserPath = "github.com/anser-rpc/anser"

const wantShape = "want func(ctx context.Context, in *Args) (*Reply, error), other arguments and results with a context first and an error last, or a stream (anser.Sender, anser.Receiver, *anser.Stream)"

// method returns the method of the contract, or nil after a mistake.
func (r *reader) method(s *Service, f *types.Func, doc *ast.CommentGroup) *Method {
	m := &Method{Name: f.Name(), Doc: text(doc), At: r.fset.Position(f.Pos())}
	m.Deprecated = deprecated(m.Doc)
	_, oneway := directive(doc, onewayComment)
	_, m.Idempotent = directive(doc, idempotentComment)
	if doc != nil {
		for _, c := range doc.List {
			word, _, _ := strings.Cut(c.Text, " ")
			if strings.HasPrefix(word, "//anser:") && word != onewayComment && word != idempotentComment {
				r.wrong(c.Pos(), "%s is unknown: a method has %s or %s", word, onewayComment, idempotentComment)
			}
		}
	}
	if !f.Exported() {
		r.wrong(f.Pos(), "method %s.%s is not exported", s.Go, f.Name())
		return nil
	}
	before := len(r.mistakes)
	r.shape(s, f, m, oneway)
	if len(r.mistakes) > before {
		return nil
	}
	if m.Idempotent && m.Kind >= Oneway {
		r.wrong(f.Pos(), "method %s.%s is a stream or oneway, and is never called again by itself: remove %s", s.Go, f.Name(), idempotentComment)
	}
	return m
}

// shape finds out how the method is called.
func (r *reader) shape(s *Service, f *types.Func, m *Method, oneway bool) {
	sig := f.Signature()
	name := s.Go + "." + f.Name()
	if sig.Variadic() {
		r.wrong(f.Pos(), "method %s takes any number of arguments: take a slice", name)
		return
	}
	in, out := vars(sig.Params()), vars(sig.Results())
	for _, v := range append(in, out...) {
		if invalid(v.Type()) {
			r.wrong(v.Pos(), "method %s uses a type that is not defined, or whose package is not found", name)
			return
		}
	}
	if len(in) == 0 || !isNamed(in[0].Type(), "context", "Context") {
		r.wrong(f.Pos(), "method %s does not begin with a context: %s", name, wantShape)
		return
	}
	if len(out) == 0 || !types.Identical(out[len(out)-1].Type(), types.Universe.Lookup("error").Type()) {
		r.wrong(f.Pos(), "method %s does not end with an error: %s", name, wantShape)
		return
	}
	in, out = in[1:], out[:len(out)-1]
	if r.stream(m, in, out) {
		if oneway {
			r.wrong(f.Pos(), "method %s is a stream, and cannot be oneway", name)
		}
		return
	}
	switch {
	case oneway && len(in) == 1 && len(out) == 0 && pointed(in[0]) != nil:
		m.Kind, m.In = Oneway, pointed(in[0])
	case oneway:
		r.wrong(f.Pos(), "method %s is oneway: want func(ctx context.Context, in *Args) error", name)
	case len(in) == 1 && len(out) == 1 && pointed(in[0]) != nil && pointed(out[0]) != nil:
		m.Kind, m.In, m.Out = Call, pointed(in[0]), pointed(out[0])
	case len(in) == 2 && len(out) == 0 && pointed(in[0]) != nil && pointed(in[1]) != nil && isMessage(in[0].Type()) == isMessage(in[1].Type()):
		m.Kind, m.In, m.Out = Filled, pointed(in[0]), pointed(in[1])
	case len(in) == 1 && len(out) == 1 && messageLike(in[0]) && messageLike(out[0]):
		r.wrong(f.Pos(), "method %s: the request and the reply must both be pointers: %s", name, wantShape)
	case len(in)+len(out) == 0:
		r.wrong(f.Pos(), "method %s has no argument and no result", name)
	default:
		m.Kind, m.Args, m.Results = Tuple, in, out
		for _, v := range append(in, out...) {
			if why := unfit(v.Type()); why != "" {
				r.wrong(v.Pos(), "method %s: a value of type %s cannot be part of a message: %s", name, types.TypeString(v.Type(), nil), why)
			}
		}
		return
	}
	for _, t := range []types.Type{m.In, m.Out} {
		if t == nil {
			continue
		}
		if why := unfit(t); why != "" {
			r.wrong(f.Pos(), "method %s: a value of type %s cannot be a message: %s", name, types.TypeString(t, nil), why)
		}
	}
}

// stream finds out whether the method is a stream.
func (r *reader) stream(m *Method, in, out []*types.Var) bool {
	switch {
	case len(in) == 2 && len(out) == 0 && pointed(in[0]) != nil && isNamed(in[1].Type(), anserPath, "Sender"):
		m.Kind, m.In, m.Out = ServerStream, pointed(in[0]), typeArg(in[1].Type(), 0)
	case len(in) == 1 && len(out) == 1 && isNamed(in[0].Type(), anserPath, "Receiver") && pointed(out[0]) != nil:
		m.Kind, m.In, m.Out = ClientStream, typeArg(in[0].Type(), 0), pointed(out[0])
	case len(in) == 1 && len(out) == 0 && pointed(in[0]) != nil && isNamed(pointed(in[0]), anserPath, "Stream"):
		m.Kind, m.In, m.Out = BothStream, typeArg(pointed(in[0]), 1), typeArg(pointed(in[0]), 0)
	default:
		return false
	}
	return true
}

func vars(t *types.Tuple) []*types.Var {
	var list []*types.Var
	for v := range t.Variables() {
		list = append(list, v)
	}
	return list
}

// pointed returns what the variable points to, or nil if it is no pointer.
func pointed(v *types.Var) types.Type {
	if p, ok := types.Unalias(v.Type()).(*types.Pointer); ok {
		return p.Elem()
	}
	return nil
}

// messageLike reports whether the variable is a pointer, or a struct, of which a pointer was most
// likely meant.
func messageLike(v *types.Var) bool {
	_, isStruct := v.Type().Underlying().(*types.Struct)
	return isStruct || pointed(v) != nil
}

func isNamed(t types.Type, path, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path
}

func typeArg(t types.Type, i int) types.Type {
	return types.Unalias(t).(*types.Named).TypeArgs().At(i)
}

// isMessage reports whether the type has the method that makes it a protobuf message.
func isMessage(t types.Type) bool {
	m, _, _ := types.LookupFieldOrMethod(t, true, nil, "ProtoReflect")
	_, ok := m.(*types.Func)
	return ok
}

// invalid reports whether the type, or one that it is made of, could not be found.
func invalid(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return t.Kind() == types.Invalid
	case *types.Pointer:
		return invalid(t.Elem())
	case *types.Slice:
		return invalid(t.Elem())
	case *types.Array:
		return invalid(t.Elem())
	case *types.Map:
		return invalid(t.Key()) || invalid(t.Elem())
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			if invalid(arg) {
				return true
			}
		}
	}
	return false
}

// unfit returns why a value of the type cannot be sent, or "".
func unfit(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Chan:
		return "a channel is not data"
	case *types.Signature:
		return "a function is not data"
	case *types.Pointer:
		return unfit(t.Elem())
	case *types.Slice:
		return unfit(t.Elem())
	case *types.Array:
		return unfit(t.Elem())
	case *types.Map:
		if why := unfit(t.Key()); why != "" {
			return why
		}
		return unfit(t.Elem())
	case *types.Named:
		if t.Obj().Pkg() != nil && !token.IsExported(t.Obj().Name()) {
			return "the type " + t.Obj().Name() + " is not exported"
		}
		if isNamed(t, anserPath, "Sender") || isNamed(t, anserPath, "Receiver") || isNamed(t, anserPath, "Stream") {
			return "a stream has the shape func(ctx, in *Args, out anser.Sender[Event]) error, func(ctx, in anser.Receiver[Part]) (*Reply, error) or func(ctx, st *anser.Stream[Out, In]) error"
		}
		switch t.Underlying().(type) {
		case *types.Chan, *types.Signature:
			return unfit(t.Underlying())
		}
	}
	return ""
}
