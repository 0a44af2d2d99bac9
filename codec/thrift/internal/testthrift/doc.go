// Package testthrift is what Thrift's compiler makes of testthrift.thrift, for tests. The compiler
// is a Debian package, so this is renewed by hand, in the folder above:
//
//	thrift --gen go:skip_remote -out . testthrift.thrift && gofmt -w testthrift
package testthrift
