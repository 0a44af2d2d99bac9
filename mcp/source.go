package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/anser-rpc/anser/contract"
)

// Source is where methods come from, for one caller: a server for the client of a request, a
// client of services, a gateway. Implementations are safe for concurrent use.
type Source interface {
	// Methods returns the methods that the caller may call, in any order. A method that is the
	// same as before should be the same pointer: its schemas are made once.
	Methods(ctx context.Context) ([]*Method, error)
	// Call calls a method with a message in JSON, and returns its reply in JSON, or nil if the
	// method has none. If each is not nil, the method is a stream of the server, whose messages
	// each gets; an error of each ends the stream and is returned. ctx bounds the call.
	Call(ctx context.Context, m *Method, message json.RawMessage, each func(json.RawMessage) error) (json.RawMessage, error)
}

// A Counter is a [Source] that counts the lists of its methods. Count returns an error if the
// caller has asked for too many. A call of a tool counts by itself, as a call of its method.
type Counter interface {
	Count() error
}

// Method is a method that can be a tool. It must not be changed once a [Source] has returned it.
type Method struct {
	// Service is the name of the service in the registry, if there are several or a gateway is in
	// front of them, otherwise "".
	Service string
	// Name is the name of the method, such as "orders.v1.Orders.Get".
	Name string
	// Contract describes the messages of the method. It is never nil.
	Contract *contract.Schema
	// ReadOnly says that calls have no effects, Idempotent that they may be repeated.
	ReadOnly, Idempotent bool

	once    sync.Once // makes the fields below
	made    *tool
	problem error
}

// about returns the method in its contract, or nil.
func (m *Method) about() *contract.Method {
	i := strings.LastIndexByte(m.Name, '.')
	service := m.Contract.Service(m.Name[:max(i, 0)])
	if service == nil {
		return nil
	}
	return service.Method(m.Name[i+1:])
}

// FullName returns the name with the service in front.
func (m *Method) FullName() string {
	if m.Service == "" {
		return m.Name
	}
	return m.Service + "/" + m.Name
}
