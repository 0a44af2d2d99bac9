// Package grpcstubs runs the code that protoc-gen-go-grpc generates over Anser, unchanged: a client
// gets a [Conn] in place of a *grpc.ClientConn, and a server a [Registrar] in place of a
// *grpc.Server.
//
//	conn, err := anser.Dial("etcd://127.0.0.1:2379/orders", etcd.Scheme())
//	client := pb.NewOrdersClient(grpcstubs.NewConn(conn)) // was: grpc.NewClient(…)
//
//	server := anser.NewServer()
//	pb.RegisterOrdersServer(grpcstubs.NewRegistrar(server), impl) // was: grpc.NewServer()
//
// Calls go over Anser's protocol, so balancing, retries, breakers, limits, authentication and
// traffic rules are those of Anser. The method /orders.v1.Orders/Place is called
// orders.v1.Orders.Place. Code that "anser gen" generates from the same contract has the same names
// and messages: clients and servers of both kinds understand each other.
//
// Metadata, headers, trailers, status codes with details, deadlines and cancellation work as over
// gRPC. Errors of a client have a status, and wrap the *anser.Error, which says whether the call
// may have run. Options of calls that have no meaning here are errors.
package grpcstubs
