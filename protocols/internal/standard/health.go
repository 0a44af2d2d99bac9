// Package standard has the services that gRPC clients expect of every server: health and
// reflection. Their few messages are written by hand; see [exchange.Bytes].
package standard

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

// Add serves the services on s, except one that the program serves itself.
func Add(s *anser.Server) {
	bytes := reflect.TypeFor[exchange.Bytes]()
	for _, list := range [][]anser.DynamicMethod{
		{
			{Name: "grpc.health.v1.Health.Check", Handle: check(s)},
			{Name: "grpc.health.v1.Health.List", Handle: list(s)},
			{Name: "grpc.health.v1.Health.Watch", Stream: watch(s), ServerStream: true},
		},
		{{Name: "grpc.reflection.v1.ServerReflection.ServerReflectionInfo", Stream: reflection(s), ClientStream: true, ServerStream: true}},
		{{Name: "grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo", Stream: reflection(s), ClientStream: true, ServerStream: true}},
	} {
		var missing []anser.DynamicMethod
		for _, m := range list {
			if _, ok := s.Method(m.Name); !ok {
				m.Request, m.Reply, m.Foreign = bytes, bytes, true
				missing = append(missing, m)
			}
		}
		if len(missing) == len(list) {
			_ = s.HandleDynamic(missing) // a method that was added meanwhile is the program's own
		}
	}
}

// The states of grpc.health.v1.
const (
	serving        = 1
	notServing     = 2
	serviceUnknown = 3
)

// state returns the state of a service; "" is the server as a whole.
func state(ctx context.Context, s *anser.Server, service string) uint64 {
	if service != "" && !slices.ContainsFunc(s.Methods(), func(m anser.MethodType) bool { return ServiceOf(m.Name) == service }) {
		return serviceUnknown
	}
	if h := host.FromContext(ctx); h != nil {
		select {
		case <-h.Draining():
			return notServing
		default:
		}
	}
	return serving
}

// ServiceOf returns the service of a method.
func ServiceOf(method string) string { return method[:max(strings.LastIndexByte(method, '.'), 0)] }

func status(n uint64) *exchange.Bytes {
	return &exchange.Bytes{B: protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), n)}
}

func check(s *anser.Server) func(context.Context, any) (any, error) {
	return func(ctx context.Context, in any) (any, error) {
		service, err := text(in.(*exchange.Bytes).B, 1)
		if err != nil {
			return nil, err
		}
		n := state(ctx, s, service)
		if n == serviceUnknown {
			return nil, anser.Errorf(anser.NotFound, "the service is not served here")
		}
		return status(n), nil
	}
}

func list(s *anser.Server) func(context.Context, any) (any, error) {
	return func(ctx context.Context, _ any) (any, error) {
		out := new(exchange.Bytes)
		for _, service := range append([]string{""}, Services(s.MethodsFor(ctx))...) {
			var entry []byte
			entry = protowire.AppendString(protowire.AppendTag(entry, 1, protowire.BytesType), service)
			entry = protowire.AppendBytes(protowire.AppendTag(entry, 2, protowire.BytesType), status(state(ctx, s, service)).B)
			out.B = protowire.AppendBytes(protowire.AppendTag(out.B, 1, protowire.BytesType), entry)
		}
		return out, nil
	}
}

// Services returns the services of methods, sorted.
func Services(methods []anser.MethodType) []string {
	var names []string
	for _, m := range methods {
		names = append(names, ServiceOf(m.Name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// watch sends the state of a service at once, and when it changes: when the server drains.
func watch(s *anser.Server) func(context.Context, *anser.DynamicStream) error {
	return func(ctx context.Context, st *anser.DynamicStream) error {
		in := new(exchange.Bytes)
		if err := st.Recv(in); err != nil {
			return err
		}
		service, err := text(in.B, 1)
		if err != nil {
			return err
		}
		now := state(ctx, s, service)
		if err := st.Send(status(now)); err != nil {
			return err
		}
		var draining <-chan struct{}
		if h := host.FromContext(ctx); h != nil && now == serving {
			draining = h.Draining()
		}
		select {
		case <-draining:
			return st.Send(status(notServing))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// text returns the last value of a text field of a message.
func text(b []byte, field protowire.Number) (value string, err error) {
	err = fields(b, func(n protowire.Number, v []byte, _ uint64) {
		if n == field {
			value = string(v)
		}
	})
	return value, err
}

var errMessage = anser.Refuse(anser.InvalidArgument, "the message is not a protobuf message")

// fields calls f with the fields of a message: with the bytes of a field that has a length, or with
// a number.
func fields(b []byte, f func(n protowire.Number, v []byte, number uint64)) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return errMessage
		}
		b = b[size:]
		var v []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			v, size = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(b)
		default:
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 {
			return errMessage
		}
		b = b[size:]
		f(n, v, number)
	}
	return nil
}
