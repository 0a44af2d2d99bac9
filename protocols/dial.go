package protocols

import (
	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/grpcclient"
	"github.com/anser-rpc/anser/protocols/internal/rpcxclient"
)

// GRPC is a transport for [anser.Dial] by which a client calls gRPC servers, in any language:
//
//	c, err := anser.Dial("grpc://10.0.0.7:50051,10.0.0.8:50051", protocols.GRPC())
//
// The addresses may as well come from a registry that has Anser servers, too. Balancing,
// retries, budgets, breakers, rules, interceptors and observers are those of every client. With
// [anser.TLS] the connections have TLS and the server must offer HTTP/2 by ALPN; without it they
// are in clear text.
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

// RPCX is a transport for [anser.Dial] by which a client calls rpcx servers:
//
//	c, err := anser.Dial("rpcx://10.0.0.7:8972,10.0.0.8:8972", protocols.RPCX())
//
// The addresses may as well come from a registry that has Anser servers, too. Balancing,
// retries, budgets, breakers, rules, interceptors and observers are those of every client. With
// [anser.TLS] the connections have TLS.
//
// A method is named by its service path and its own name: "Arith.Mul". Messages are in MessagePack,
// JSON, protobuf or raw bytes, with gzip or without a compression. A credential of the client that
// is a token is sent with every call, as XClient.Auth of rpcx does. The metadata of a reply are
// trailers. A ping is a heartbeat.
//
// An rpcx server is not told that a call is cancelled. It says only the text of an error: the
// error has the code Unknown and the outcome Executed, and Refused if the server has no such
// service or method, or its limit of requests is reached. Calls that a connection had not answered
// when it was lost have the outcome Unknown, unless nothing of them was sent. Streams and calls
// with an idempotency key are refused.
func RPCX() anser.Transport {
	return anser.Transport{Scheme: "rpcx", Wrap: rpcxclient.New}
}
