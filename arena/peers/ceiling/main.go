// Ceiling is the least that an RPC can cost on a machine, as a peer of the arena: framing, batched
// writes and the codec. It is no framework: no deadlines, no errors of handlers, no limits.
//
// Its hot path is that of internal/ceiling and is kept the same: conn.do, the goroutine that
// reads, the server's loop and the codec. Added is what the contract asks for, off that path: a
// second method, for which a field of the header that was unused has its number, frames larger
// than the buffer, and calls that fail with their connection instead of ending the program.
package main

import (
	"context"
	"net"

	"github.com/anser-rpc/anser/arena/workload"
)

func main() { newProgram().Main() }

func newProgram() *workload.Program {
	return &workload.Program{
		Name: "ceiling",
		Serve: func(ctx context.Context, o *workload.ServerOptions) error {
			return workload.Listen(ctx, o.Addr, func(c net.Conn) { answer(c, o) })
		},
		Open: workload.Open(dial),
	}
}
