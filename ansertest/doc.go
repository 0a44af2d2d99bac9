// Package ansertest helps to test services without sockets and without waiting: a network in memory
// that works inside the bubbles of testing/synctest, connections that break in the ways connections
// do, and a check for leaks.
//
// A server listens on a [Network], a client is given its Dial method:
//
//	network := new(ansertest.Network)
//	go server.Serve(network.Listen("arith:1"))
//	client, err := anser.Dial("arith:1", anser.Dialer(network.Dial))
//
// Inside synctest.Test everything that waits on such a connection is durably blocked, so a test of a
// timeout of 30 seconds takes no time.
package ansertest
