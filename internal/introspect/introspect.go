// Package introspect asks servers how they describe themselves: which methods they have, and the
// contracts of these.
package introspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
)

// What a server may publish, so that none fills the memory of a program that asks.
const (
	MaxMethods   = 4096
	MaxContracts = 256
)

// ErrNothing is the error of a server that publishes nothing.
var ErrNothing = errors.New("it does not publish its methods: start it without anser.NoDescribe, and let its callers call Anser.Methods and Anser.Contract")

// Methods returns the methods of a server. A server that does not answer is not asked again.
func Methods(ctx context.Context, c *anser.Client, opts ...anser.CallOption) ([]anser.MethodInfo, error) {
	list := new(anser.MethodList)
	err := c.Call(ctx, anser.MethodsName, new(anser.None), list, once(opts)...)
	switch {
	case errors.Is(err, anser.Unimplemented):
		return nil, ErrNothing
	case err != nil:
		return nil, err
	case len(list.Methods) > MaxMethods:
		return nil, fmt.Errorf("it publishes %d methods: at most %d are served", len(list.Methods), MaxMethods)
	}
	return list.Methods, nil
}

// Contracts returns the contracts of the services that the methods belong to, by the names of the
// services. Services without a contract are left out.
func Contracts(ctx context.Context, c *anser.Client, methods []anser.MethodInfo, opts ...anser.CallOption) (map[string]*anser.ContractReply, error) {
	contracts, asked := make(map[string]*anser.ContractReply), make(map[string]bool)
	for i := range methods {
		service, _ := SplitName(methods[i].Name)
		if asked[service] {
			continue
		}
		if len(asked) == MaxContracts {
			return nil, fmt.Errorf("it publishes methods of over %d services: no more are served", MaxContracts)
		}
		asked[service] = true
		reply := new(anser.ContractReply)
		err := c.Call(ctx, anser.ContractName, &anser.ContractRequest{Service: service}, reply, once(opts)...)
		if errors.Is(err, anser.NotFound) || err == nil && reply.Schema == nil {
			continue
		}
		if err == nil {
			err = reply.Schema.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("the contract of %s: %w", service, err)
		}
		contracts[service] = reply
	}
	return contracts, nil
}

// once returns the options of a call that is not repeated.
func once(opts []anser.CallOption) []anser.CallOption {
	return append([]anser.CallOption{anser.Codec(new(codec.JSON)), anser.WithFailMode(anser.Failfast)}, opts...)
}

// StreamKind tells which sides of a stream send any number of messages: it is "server stream",
// "client stream", or "stream" for both.
func StreamKind(m *anser.MethodInfo) string {
	switch {
	case m.ServerStream && !m.ClientStream:
		return "server stream"
	case m.ClientStream && !m.ServerStream:
		return "client stream"
	}
	return "stream"
}

// SplitName returns the service and the method of a name such as "orders.v1.Orders.Get".
func SplitName(name string) (service, method string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}
