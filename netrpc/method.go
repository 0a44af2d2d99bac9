package netrpc

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"reflect"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// shapes lists the supported signatures, for error messages.
const shapes = "want func(*Args, *Reply) error, func(context.Context, *Args, *Reply) error or func(context.Context, *Args) (*Reply, error)"

var errNilReply = errors.New("rpc: the method returned neither a reply nor an error")

// method is a registered function.
type method struct {
	name     string       // the first one
	argument reflect.Type // parameter type of the function
	reply    reflect.Type // without its pointer
	context  bool         // whether the function takes a context
	call     func(ctx context.Context, argument any) (any, error)
}

// newMethod prepares the calls of f.
func newMethod(name string, f reflect.Value) (*method, error) {
	t := f.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	withContext := len(in) > 0 && in[0] == contextType
	if withContext {
		in = in[1:]
	}
	wrong := fmt.Errorf("the signature %s cannot be served: %s", t, shapes)
	if t.IsVariadic() || t.NumOut() == 0 || t.Out(t.NumOut()-1) != errorType {
		return nil, wrong
	}
	m := &method{name: name, context: withContext}
	returns := false
	switch {
	case len(in) == 2 && t.NumOut() == 1:
		m.reply = in[1]
	case len(in) == 1 && t.NumOut() == 2 && withContext:
		m.reply, returns = t.Out(0), true
	default:
		return nil, wrong
	}
	m.argument = in[0]
	if m.reply.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("the reply type %s is not a pointer: %s", m.reply, shapes)
	}
	for _, used := range []reflect.Type{m.argument, m.reply} {
		if !exportedOrBuiltin(used) {
			return nil, fmt.Errorf("the type %s is not exported", used)
		}
	}
	m.reply = m.reply.Elem()
	m.call = m.caller(f, returns)
	return m, nil
}

func exportedOrBuiltin(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return token.IsExported(t.Name()) || t.PkgPath() == ""
}

// byPointer reports whether the function takes a pointer to its argument.
func (m *method) byPointer() bool { return m.argument.Kind() == reflect.Pointer }

// caller returns a function that calls f with a decoded argument and returns a pointer to its
// reply.
func (m *method) caller(f reflect.Value, returns bool) func(context.Context, any) (any, error) {
	byPointer := m.byPointer()
	return func(ctx context.Context, argument any) (any, error) {
		var buf [3]reflect.Value
		args := buf[:0]
		if m.context {
			args = append(args, reflect.ValueOf(ctx))
		}
		arg := reflect.ValueOf(argument)
		if !byPointer {
			arg = arg.Elem()
		}
		args = append(args, arg)
		var out reflect.Value
		if !returns {
			out = newReply(m.reply)
			args = append(args, out)
		}
		results := f.Call(args)
		if err, _ := results[len(results)-1].Interface().(error); err != nil {
			return nil, err
		}
		if returns {
			if out = results[0]; out.IsNil() {
				return nil, errNilReply
			}
		}
		return out.Interface(), nil
	}
}

// newReply allocates a reply for a method to fill; like net/rpc, it also allocates maps and
// slices.
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
