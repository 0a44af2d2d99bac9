// Package ansertest helps to test services without sockets and without waiting: an in-memory
// network that works inside testing/synctest bubbles, connections with faults, and a check for
// leaks.
//
// A server listens on a [Network], and a client uses its Dial method:
//
//	network := new(ansertest.Network)
//	go server.Serve(network.Listen("arith:1"))
//	client, err := anser.Dial("arith:1", anser.Dialer(network.Dial))
//
// Inside synctest.Test everything that waits on such a connection is durably blocked, so a test of
// a timeout of 30 seconds takes no time.
package ansertest
