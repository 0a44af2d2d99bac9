package protocols

import (
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/rpcx"
	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
)

// RPCXClients returns the protocol of rpcx, version 1, for [anser.Protocols]: stock rpcx clients
// call the methods of the server. The service path "Arith" and the method "Mul" are the method
// "Arith.Mul". Payloads are MessagePack, JSON, protobuf or raw bytes, with or without gzip; Thrift
// is refused. The metadata of a call is forwarded with its keys in lower case, and trailers are
// the metadata of the reply. The token of a client ("__AUTH") is a credential of the scheme
// "token".
//
// rpcx has no cancellation, no streams and no message for a drain: a call that arrives during one
// is not answered, and its connection is closed when the others are, so that its client calls
// another server. The error of a call is its text; the keys anser-code and anser-outcome of the
// metadata say more. Messages of a server to its clients and file transfer of rpcx are not part of
// it.
func RPCXClients() anser.Protocol {
	return &rpcxProtocol{servers: make(map[*anser.Server]*exchange.Directory)}
}

type rpcxProtocol struct {
	mu      sync.Mutex // guards servers
	servers map[*anser.Server]*exchange.Directory
}

func (p *rpcxProtocol) Name() string { return "rpcx" }

func (p *rpcxProtocol) NextProtos() []string { return nil }

func (p *rpcxProtocol) Begins(begin []byte) (is, may bool) { return rpcxwire.Begins(begin) }

func (p *rpcxProtocol) Serve(s *anser.Server, in anser.Incoming) error {
	p.mu.Lock()
	methods := p.servers[s]
	if methods == nil {
		methods = exchange.NewDirectory(s)
		p.servers[s] = methods
	}
	p.mu.Unlock()
	return rpcx.Serve(s, methods, in)
}
