// Package jsonrpc replaces net/rpc/jsonrpc by changing one import: JSON-RPC 1.0 codecs for package
// netrpc, which also work with net/rpc. Its server also supports JSON-RPC 2.0, with batches,
// notifications, named parameters and error codes, on the same connection; [Dial2], [NewClient2]
// and [NewClientCodec2] make clients for it.
//
// A method of netrpc has one argument. In JSON-RPC 1.0 params is an array with that argument. In
// 2.0 it is either such an array, or an object that is the argument itself.
//
// Everything in this package is safe for concurrent use, except that a codec must be read by one
// goroutine at a time.
package jsonrpc
