// Netrpc is two peers of the arena: net/rpc of the standard library with gob, and with a codec of
// its own for protobuf messages.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/rpc"

	"github.com/anser-rpc/anser/arena/workload"
)

func main() { newProgram().Main() }

func newProgram() *workload.Program {
	mode := &gobMode
	return &workload.Program{
		Name: "netrpc",
		Flags: func(f *flag.FlagSet) {
			f.Func("codec", "gob or protobuf; gob without it", func(s string) error {
				switch s {
				case "gob":
					mode = &gobMode
				case "protobuf":
					mode = &protobufMode
				default:
					return fmt.Errorf("%q: use gob or protobuf", s)
				}
				return nil
			})
		},
		Serve: func(ctx context.Context, o *workload.ServerOptions) error { return mode.listen(ctx, o) },
		Open: func(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
			return workload.Open(mode.dial)(ctx, o)
		},
	}
}

// mode is what tells the two peers apart.
type mode struct {
	services func(o *workload.ServerOptions) (hello, math any)
	serve    func(s *rpc.Server, c net.Conn)
	dial     func(ctx context.Context, addr string) (workload.Conn, error)
}

func (m *mode) listen(ctx context.Context, o *workload.ServerOptions) error {
	s := rpc.NewServer()
	hello, math := m.services(o)
	if err := s.RegisterName("Hello", hello); err != nil {
		return err
	}
	if err := s.RegisterName("MathService", math); err != nil {
		return err
	}
	return workload.Listen(ctx, o.Addr, func(c net.Conn) { m.serve(s, c) })
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}
