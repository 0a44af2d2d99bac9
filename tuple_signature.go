package anser

import (
	"context"
	"fmt"
	"go/token"
	"reflect"
)

// shapes lists the signatures that can be served, for error messages.
const shapes = "want func(context.Context, *Args) (*Reply, error), func(context.Context, *Args, *Reply) error, func(*Args, *Reply) error or func(context.Context, A, B, …) (C, D, …, error)"

var contextType = reflect.TypeFor[context.Context]()

var errorType = reflect.TypeFor[error]()

var tupleType = reflect.TypeFor[Tuple]()

var noneType = reflect.TypeFor[None]()

// signature describes a function that serves or calls a method.
type signature struct {
	tuple   bool
	in, out []reflect.Type // of a tuple: without the context and the error

	// Otherwise:
	request, reply reflect.Type
	withContext    bool
	byPointer      bool // the request is passed by pointer
	outReply       bool // the function gets the reply to fill in
}

func parseSignature(t reflect.Type) (*signature, error) {
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	sig := &signature{withContext: len(in) > 0 && in[0] == contextType}
	if sig.withContext {
		in = in[1:]
	}
	if t.IsVariadic() || t.NumOut() == 0 || t.Out(t.NumOut()-1) != errorType {
		return nil, fmt.Errorf("the signature %s cannot be served: %s", t, shapes)
	}
	results := t.NumOut() - 1
	switch {
	case len(in) == 2 && results == 0 && in[1].Kind() == reflect.Pointer && !isMessage(in[0]) == !isMessage(in[1]):
		sig.outReply = true
		sig.reply = in[1].Elem()
	case len(in) == 1 && results == 1 && sig.withContext && isMessageLike(in[0]) && isMessageLike(t.Out(0)):
		if t.Out(0).Kind() != reflect.Pointer {
			return nil, fmt.Errorf("the reply type %s is not a pointer: %s", t.Out(0), shapes)
		}
		if in[0].Kind() != reflect.Pointer {
			return nil, fmt.Errorf("the request type %s is not a pointer: %s", in[0], shapes)
		}
		sig.reply = t.Out(0).Elem()
	case sig.withContext:
		sig.tuple, sig.in = true, in
		for i := range results {
			sig.out = append(sig.out, t.Out(i))
		}
		return sig, nil
	default:
		return nil, fmt.Errorf("the signature %s cannot be served: %s", t, shapes)
	}
	sig.request = in[0]
	sig.byPointer = in[0].Kind() == reflect.Pointer
	if sig.byPointer {
		sig.request = in[0].Elem()
	} else if sig.withContext {
		return nil, fmt.Errorf("the request type %s is not a pointer: %s", in[0], shapes)
	}
	return sig, nil
}

// isMessageLike reports whether t is a pointer, or a struct, of which a pointer was most likely
// meant.
func isMessageLike(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Struct
}

func exportedOrBuiltin(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return token.IsExported(t.Name()) || t.PkgPath() == ""
}
