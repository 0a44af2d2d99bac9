// Package connectstubs runs the code that protoc-gen-connect-go generates for version 2 of Connect
// over Anser, unchanged: a client gets the [NewTransport] of this package in place of the one of
// connecthttp, and a server serves its handlers with [Mount].
//
//	conn, err := anser.Dial("etcd://127.0.0.1:2379/orders", etcd.Scheme())
//	transport := connectstubs.NewTransport(conn) // was: connecthttp.NewTransport(…)
//	client := ordersconnect.NewOrdersClient(connect.NewClient(transport))
//
//	handlers := connect.NewServer()
//	ordersconnect.RegisterOrdersHandler(handlers, impl)
//	err := connectstubs.Mount(server, handlers) // was: connecthttp.Mount(mux, handlers)
//
// Calls go over Anser's protocol, so balancing, retries, breakers, limits, authentication and
// traffic rules are those of Anser. The method /orders.v1.Orders/Place is called
// orders.v1.Orders.Place. Code that "anser gen" generates from the same contract, and that of
// protoc-gen-go-grpc over package grpcstubs, has the same names, messages, headers and errors:
// clients and servers of all three understand each other.
//
// Headers and trailers with several values and -Bin keys, errors with details, deadlines,
// cancellation, the idempotency level of the contract and Connect's interceptors work as over HTTP.
// Errors of a client are a *connect.Error that wraps the *anser.Error, which says whether the call
// may have run. [connect.CallInfo] has the protocol "anser", sizes of messages, and the address of
// the peer on the server; compression is Anser's, and its fields are empty.
package connectstubs
