// Package jsonrpc is net/rpc/jsonrpc with one changed import: JSON-RPC 1.0 codecs for package netrpc,
// which fit net/rpc too. Its server also speaks JSON-RPC 2.0, with batches, notifications, named
// parameters and error codes, on the same connection; [Dial2], [NewClient2] and [NewClientCodec2]
// make clients for that.
//
// A method of netrpc has one argument. In JSON-RPC 1.0 params is an array with that argument. In 2.0 it is
// such an array too, or an object that is the argument itself.
//
// Everything in this package is safe for concurrent use, except that of a codec one goroutine reads
// at a time.
package jsonrpc
