// Arpc is three peers of the arena: arpc with its default settings, with handlers on the goroutine
// that reads their connection, and that without Nagle's algorithm.
package main

import (
	"context"
	"flag"
	"net"

	"github.com/lesismal/arpc"
	"github.com/lesismal/arpc/log"

	"github.com/anser-rpc/anser/arena/workload"
)

func main() {
	log.SetLevel(log.LevelNone) // it writes to the standard output
	newProgram(new(settings)).Main()
}

// settings are what tells the peers apart.
type settings struct {
	inline  bool // handlers on the reading goroutine
	buffers bool // of bufferSize
	noDelay bool // no Nagle's algorithm
}

func newProgram(s *settings) *workload.Program {
	return &workload.Program{
		Name: "arpc",
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&s.inline, "inline", s.inline, "server: handlers on the goroutine that reads their connection")
			f.BoolVar(&s.buffers, "buffers", s.buffers, "buffers of 64 KiB instead of the default ones")
			f.BoolVar(&s.noDelay, "nodelay", s.noDelay, "no Nagle's algorithm")
		},
		Serve: s.serve,
		Open:  workload.Open(s.dial),
	}
}

// bufferSize is the setting that lets arpc write several messages at once. Without it the buffer
// for them has no size, so that each is written by itself though batches are on by default:
// measured with 100 callers on 2 connections, the server's part of a call is 30 % cheaper with it
// where Nagle's algorithm is off, and hardly where the kernel makes the batches.
const bufferSize = 64 << 10

// apply sets what both sides have. EnablePool would spare some garbage, but with batches a
// connection that ends frees a buffer twice; with 20 connections that came and went, calls on
// others hung.
func (s *settings) apply(h arpc.Handler) {
	if s.buffers {
		h.SetSendBufferSize(bufferSize)
		h.SetRecvBufferSize(bufferSize)
	}
	if s.noDelay {
		h.HandleConnected(func(*arpc.Client) {}) // the default one switches the algorithm on
	}
}

func (s *settings) serve(ctx context.Context, o *workload.ServerOptions) error {
	server := arpc.NewServer()
	server.Codec = codec{}
	server.Handler.SetAsyncResponse(!s.inline)
	s.apply(server.Handler)
	server.Handler.Handle("Hello.Say", func(ctx *arpc.Context) {
		m := new(workload.BenchmarkMessage)
		if err := ctx.Bind(m); err != nil {
			ctx.Error(err)
			return
		}
		o.Answer(m)
		ctx.Write(m)
	})
	server.Handler.Handle("MathService.Add", func(ctx *arpc.Context) {
		var in workload.AddRequest
		if err := ctx.Bind(&in); err != nil {
			ctx.Error(err)
			return
		}
		o.Delay()
		ctx.Write(&workload.AddReply{X: in.A + in.B})
	})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.Background())
	}
}

type conn struct{ *arpc.Client }

func (s *settings) dial(ctx context.Context, addr string) (workload.Conn, error) {
	h := arpc.NewHandler()
	s.apply(h)
	c, err := arpc.NewClient(func() (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) }, h)
	if err != nil {
		return nil, err
	}
	c.Codec = codec{}
	return conn{c}, nil
}

func (c conn) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	out := new(workload.BenchmarkMessage)
	return out, c.CallContext(ctx, "Hello.Say", in, out)
}

func (c conn) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	out := new(workload.AddReply)
	return out, c.CallContext(ctx, "MathService.Add", in, out)
}

func (c conn) Close() error {
	c.Stop()
	return nil
}
