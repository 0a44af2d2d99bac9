package connectstubs

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/anser-rpc/anser"
)

// Mount serves the methods of handlers on s, with their interceptors, which run inside those of
// Anser. Services must be registered on handlers before. The options apply to every method. Methods
// whose contract has an idempotency level are served with [anser.Idempotent].
//
// Mount returns an error if handlers has no methods, if a name is taken, if a method has no
// descriptor of protobuf as its schema or its messages have no Go types, and if handlers has a
// handler of unknown procedures: Anser refuses calls of other methods before a handler sees them.
func Mount(s *anser.Server, handlers *connect.Server, opts ...anser.HandleOption) error {
	if s == nil || handlers == nil {
		return errors.New("connectstubs: the server is nil")
	}
	if hasUnknownHandler(handlers) {
		return errors.New("connectstubs: SetUnknownHandler has no meaning over Anser, which refuses calls of methods that are not registered: leave it out")
	}
	var plain, idempotent []anser.DynamicMethod
	for spec := range handlers.Specs() {
		m, err := method(handlers, spec)
		if err != nil {
			return err
		}
		if spec.IdempotencyLevel != connect.IdempotencyUnknown && m.Handle != nil {
			idempotent = append(idempotent, *m)
		} else {
			plain = append(plain, *m)
		}
	}
	if len(plain)+len(idempotent) == 0 {
		return errors.New("connectstubs: there are no handlers: register services before Mount")
	}
	if err := s.HandleDynamic(plain, opts...); err != nil {
		return fmt.Errorf("connectstubs: %w", err)
	}
	opts = append([]anser.HandleOption{anser.Idempotent()}, opts...)
	if err := s.HandleDynamic(idempotent, opts...); err != nil {
		return fmt.Errorf("connectstubs: %w", err)
	}
	return nil
}

// hasUnknownHandler reports whether SetUnknownHandler was called. Connect has no function that says
// so, and it would be ignored otherwise.
func hasUnknownHandler(handlers *connect.Server) bool {
	f := reflect.ValueOf(handlers).Elem().FieldByName("unknown")
	return f.IsValid() && f.Kind() == reflect.Func && !f.IsNil()
}

// method returns a method of Connect as one of Anser.
func method(handlers *connect.Server, spec connect.Spec) (*anser.DynamicMethod, error) {
	name, err := methodName(spec.Procedure)
	if err != nil {
		return nil, err
	}
	d, ok := spec.Schema.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("connectstubs: the schema of the method %s is a %T: want the descriptor of protobuf that generated code has", name, spec.Schema)
	}
	m := &anser.DynamicMethod{Name: name}
	if m.Request, err = typeOf(d.Input()); err == nil {
		m.Reply, err = typeOf(d.Output())
	}
	if err != nil {
		return nil, fmt.Errorf("connectstubs: the method %s: %w", name, err)
	}
	switch spec.StreamType {
	case connect.StreamTypeUnary:
		m.Handle = func(ctx context.Context, request any) (any, error) {
			return serveCall(ctx, handlers, spec, request)
		}
	case connect.StreamTypeClient, connect.StreamTypeServer, connect.StreamTypeBidi:
		m.ClientStream = spec.StreamType&connect.StreamTypeClient != 0
		m.ServerStream = spec.StreamType&connect.StreamTypeServer != 0
		m.Stream = func(ctx context.Context, st *anser.DynamicStream) error {
			return serveStream(ctx, handlers, spec, st)
		}
	default:
		return nil, fmt.Errorf("connectstubs: the method %s has the unknown type %s", name, spec.StreamType)
	}
	return m, nil
}

// typeOf returns the Go type of a message.
func typeOf(d protoreflect.MessageDescriptor) (reflect.Type, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return nil, fmt.Errorf("the program has no Go type of the message %s: %w", d.FullName(), err)
	}
	return reflect.TypeOf(t.Zero().Interface()).Elem(), nil
}
