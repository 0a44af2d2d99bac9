// Package coming contains no code. Its folders contain programs with net/rpc, rpcx, gRPC, Connect
// and Kitex and the same programs with Anser, which the pages docs/from-*.md show. Its tests build
// and run the programs and compare them with the pages.
package coming
