// Package cluster keeps the instances of a service for a client: which of them are listed and
// reachable, which are ejected or have open breakers, and which subset a client of a large service
// uses. From these it builds views, which calls pick an instance from without a lock.
//
// The package knows neither calls nor connections. It is generic over the client's type of a host,
// the connections to one address, and its type of a route, a choice of instances by a router. So an
// endpoint has the client's own host in it, and a call reaches it without a conversion.
package cluster
