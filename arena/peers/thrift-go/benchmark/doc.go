// Package benchmark is the workload as Thrift sees it: what Thrift's compiler makes of
// benchmark.thrift. Its compiler is a Debian package, so this is renewed by hand, in this folder:
//
//	thrift --gen go:skip_remote -out .. ../benchmark.thrift && gofmt -w .
//
// The compiler is 0.17.0 (thrift-compiler), the newest that Debian 12 has; its code works with
// newer libraries.
package benchmark
