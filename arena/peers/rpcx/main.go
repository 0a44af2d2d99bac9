// Rpcx is three peers of the arena: rpcx with Call, with Go, and with handlers instead of
// services.
package main

import (
	"context"
	"flag"
	"sync"

	"github.com/smallnest/rpcx/log"
	"github.com/smallnest/rpcx/protocol"
	"github.com/smallnest/rpcx/share"

	"github.com/anser-rpc/anser/arena/workload"
)

func main() { newProgram(false).Main() }

// setUp sets what rpcx has one of for the whole process.
var setUp = sync.OnceFunc(func() {
	log.SetDummyLogger()
	share.RegisterCodec(protocol.ProtoBuffer, codec{})
})

// newProgram returns the program whose server has handlers or, without --handler, services.
func newProgram(handlers bool) *workload.Program {
	setUp()
	return &workload.Program{
		Name: "rpcx",
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&handlers, "handler", handlers, "server: handlers instead of services")
		},
		Serve:     func(ctx context.Context, o *workload.ServerOptions) error { return serve(ctx, o, handlers) },
		Open:      workload.Open(dial),
		OpenAsync: workload.OpenAsync(dialAsync),
	}
}
