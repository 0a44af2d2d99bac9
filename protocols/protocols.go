// Package protocols makes an Anser server speak other protocols, so that programs without Anser can
// call its services: one port speaks gRPC, gRPC-Web, Connect, JSON over HTTP, JSON-RPC, net/rpc and
// rpcx, besides Anser's own protocol.
//
//	s := anser.NewServer(protocols.All())
//
// Calls over all of them pass the same authentication, policies, limits, interceptors and
// observers. docs/protocols.md says what each protocol carries.
package protocols

import (
	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// All makes a server speak all protocols of this package and of package netrpc. The options are
// those of [HTTP].
func All(opts ...Option) anser.ServerOption {
	return anser.Protocols(HTTP(opts...), RPCXClients(), netrpc.Protocol(), jsonrpc.Protocol())
}
