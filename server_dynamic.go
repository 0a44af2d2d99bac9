package anser

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/contract"
)

// DynamicMethod is a method whose types are known only when the program runs, for
// [Server.HandleDynamic].
type DynamicMethod struct {
	// Name has the form "Service.Method".
	Name string
	// Request and Reply are the types of the messages, without pointers.
	Request, Reply reflect.Type
	// Handle is called with a *Request and returns a *Reply, under the same rules as the function
	// passed to [Handle].
	Handle func(ctx context.Context, request any) (reply any, err error)
	// Stream serves a stream in place of Handle, under the same rules as the function passed to
	// [HandleStream]: it receives messages of type Request and sends those of type Reply.
	// ClientStream and ServerStream tell which sides send any number of them; with neither, both
	// do.
	Stream                     func(ctx context.Context, st *DynamicStream) error
	ClientStream, ServerStream bool
	// Foreign offers the method to other protocols only (see [ProtocolConn]): it may have any
	// name, the codecs of the server need not carry its messages, and clients of Anser neither
	// see nor call it.
	Foreign bool
	// Contract gives the method the schema that it is part of, as the option [Contract] does; nil
	// means none. In the schema it has the name ContractName, which is Name if it is empty.
	Contract     *contract.Source
	ContractName string
	// Idempotent says that a call may be repeated; see [Idempotent]. It is not for streams.
	Idempotent bool
	// Oneway says that there is no reply: Handle returns a nil one; see [HandleOneway].
	Oneway bool
	// TakesKeys says that Handle itself sees to it that calls with the same idempotency key run
	// once, for example by passing the key on; see [IdempotencyKeyFrom] and [Deduplicate]. A call
	// that its caller says may have run ([ProtocolRequest].Repeated) does not get there, unless the
	// method is Idempotent: Handle could not tell it from a new one.
	TakesKeys bool
	// Err is why the method cannot be served, or nil. HandleDynamic returns it, and so does Serve.
	// It is for functions that add methods and have no error to return.
	Err error
}

// HandleDynamic serves methods whose types are known only when the program runs: all of them, or
// with an error none. The rules of [Handle] apply to them too.
func (s *Server) HandleDynamic(methods []DynamicMethod, opts ...HandleOption) error {
	list, err := dynamicMethods(methods)
	if err != nil {
		return s.refuseMethod(err)
	}
	return s.add(opts, list...)
}

// ReplaceDynamic serves methods in place of those with the names in remove, in one step: no call in
// between finds neither. Only methods that are Foreign can be removed; calls of them that run go
// on. With an error nothing has changed. It is for programs that forward calls and learn of
// methods while they run.
func (s *Server) ReplaceDynamic(remove []string, methods []DynamicMethod, opts ...HandleOption) error {
	list, err := dynamicMethods(methods)
	if err != nil {
		return err
	}
	for _, m := range list {
		if !m.foreign {
			return fmt.Errorf("method %q is not Foreign, and could not be removed again: use HandleDynamic", m.name)
		}
	}
	return s.replace(remove, opts, list...)
}

func dynamicMethods(methods []DynamicMethod) ([]*method, error) {
	list := make([]*method, len(methods))
	for i := range methods {
		m, err := methods[i].method()
		if err != nil {
			return nil, err
		}
		list[i] = m
	}
	return list, nil
}

func (d *DynamicMethod) method() (*method, error) {
	request, handle, oneway := d.Request, d.Handle, d.Oneway
	switch {
	case d.Err != nil:
		return nil, d.Err
	case d.Name == "":
		return nil, errors.New("a method has no name")
	case handle == nil && d.Stream == nil:
		return nil, errNilHandler(d.Name)
	case handle != nil && d.Stream != nil:
		return nil, fmt.Errorf("method %q has Handle and Stream: it is a call or a stream", d.Name)
	case d.Stream != nil && d.Oneway:
		return nil, fmt.Errorf("method %q is oneway and has Stream: a stream is not oneway", d.Name)
	case request == nil || d.Reply == nil:
		return nil, fmt.Errorf("method %q: the type of the request or of the reply is nil", d.Name)
	}
	if run := d.Stream; run != nil {
		return &method{
			name:     d.Name,
			converse: func(ctx context.Context, st anyStream) error { return run(ctx, &DynamicStream{st}) },
			request:  request, reply: d.Reply,
			sides:   sides{d.ClientStream, d.ServerStream},
			foreign: d.Foreign,
			source:  d.Contract, contractName: d.ContractName, takesKeys: d.TakesKeys, idempotent: d.Idempotent,
		}, nil
	}
	var none any = reflect.Zero(reflect.PointerTo(d.Reply)).Interface() // a nil *Reply
	return &method{
		name:       d.Name,
		newRequest: func() any { return reflect.New(request).Interface() },
		handle: func(ctx context.Context, in any) (any, error) {
			out, err := handle(ctx, in)
			if err != nil {
				return nil, err
			}
			if oneway {
				return new(None), nil
			}
			if out == nil || out == none {
				return nil, errNilReply
			}
			return out, nil
		},
		oneway:  oneway,
		request: request,
		reply:   d.Reply,
		foreign: d.Foreign,
		source:  d.Contract, contractName: d.ContractName, takesKeys: d.TakesKeys, idempotent: d.Idempotent,
	}, nil
}
