// Package rpcx has the tests with stock clients and servers of rpcx, of which the protocol module
// needs none.
package rpcx
