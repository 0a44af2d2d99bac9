// Command go-micro is a peer of the arena: Go Micro over gRPC.
package main

import (
	"google.golang.org/grpc/encoding"

	"github.com/anser-rpc/anser/arena/workload"
)

const name = "go-micro"

// contentType is that of protobuf in Go Micro's gRPC client.
const contentType = "application/grpc+proto"

// windowBytes are gRPC's windows for flow control. A fixed window ends gRPC's estimates of what
// the network holds, which cost a ping for each read, and lets a message of 1 MiB go out at once.
const windowBytes = 4 << 20

func main() {
	setUp()
	newProgram().Main()
}

func newProgram() *workload.Program { return &workload.Program{Name: name, Serve: serve, Open: open} }

// setUp registers vtproto in the place of the codec that Go Micro registers with gRPC for
// protobuf.
func setUp() { encoding.RegisterCodec(vtproto{}) }
