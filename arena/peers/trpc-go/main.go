// Command trpc-go is a peer of the arena: tRPC-Go.
package main

import (
	"trpc.group/trpc-go/trpc-go/codec"
	"trpc.group/trpc-go/trpc-go/log"

	"github.com/anser-rpc/anser/arena/workload"
)

const name = "trpc-go"

func main() {
	setUp()
	newProgram().Main()
}

func newProgram() *workload.Program { return &workload.Program{Name: name, Serve: serve, Open: open} }

// setUp has tRPC encode protobuf with vtproto, and ends its logs, which go to the standard output.
// What fails is returned as well.
func setUp() {
	codec.RegisterSerializer(codec.SerializationTypePB, vtproto{})
	log.SetLogger(log.NewZapLog(log.Config{{Writer: log.OutputConsole, Level: "fatal"}}))
}
