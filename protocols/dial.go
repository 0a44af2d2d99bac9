package protocols

import (
	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/grpcclient"
)

// GRPC is a transport for [anser.Dial] by which a client calls servers of gRPC, in any language:
//
//	c, err := anser.Dial("grpc://10.0.0.7:50051,10.0.0.8:50051", protocols.GRPC())
//
// The addresses may as well come from a registry that has servers of Anser, too. Balancing,
// retries, budgets, breakers, rules, interceptors and observers are those of every client. With
// [anser.TLS] the connections have TLS and the server must offer HTTP/2 by ALPN; without it they are
// in clear text.
//
// A method is named by its service and its own name, such as "pkg.Greeter.SayHello" or
// "pkg.Greeter/SayHello". Messages are in protobuf or, if the server can, in JSON. A credential of
// the client is sent with every call as "authorization: Bearer", or Basic for the scheme "basic".
//
// Priorities and attempts are not carried, calls with an idempotency key are refused, and a server
// cannot call its client. An error of a server that says nothing else has the outcome Executed,
// except for codes with which proxies answer, too: Unavailable, Canceled, DeadlineExceeded, Unknown
// and Internal have the outcome Unknown.
func GRPC() anser.Transport {
	return anser.Transport{Scheme: "grpc", Wrap: grpcclient.New, NextProto: "h2"}
}
