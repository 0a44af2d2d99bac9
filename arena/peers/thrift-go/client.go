package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/anser-rpc/anser/arena/peers/thrift-go/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
)

// conn is a connection, which one call at a time may use.
type conn struct {
	transport thrift.TTransport
	hello     *benchmark.HelloClient
	math      *benchmark.MathServiceClient
}

func (p *peer) dial(addr string) (*conn, error) {
	transport := thrift.NewTBufferedTransport(thrift.NewTSocketConf(addr, nil), bufferBytes)
	if err := transport.Open(); err != nil {
		return nil, err
	}
	client := thrift.NewTStandardClient(p.protocol.GetProtocol(transport), p.protocol.GetProtocol(transport))
	return &conn{transport, benchmark.NewHelloClient(client), benchmark.NewMathServiceClient(client)}, nil
}

// lines is the pool of connections for callers. After an error a connection may hold the rest of a
// reply, so it is closed, and the next caller in its place connects again.
type lines struct {
	p    *peer
	idle chan line
}

// line is the place of a connection, which is nil if it must be opened.
type line struct {
	addr string
	conn *conn
}

// use calls on the next idle connection.
func (l *lines) use(call func(c *conn) error) error {
	next := <-l.idle
	defer func() { l.idle <- next }()
	if next.conn == nil {
		c, err := l.p.dial(next.addr)
		if err != nil {
			return err
		}
		next.conn = c
	}
	err := call(next.conn)
	if err != nil && !errors.Is(err, workload.ErrWrong) {
		_ = next.conn.transport.Close() // the call's error says more
		next.conn = nil
	}
	return err
}

// open connects. Callers with their own connection have lines of one; callers that share
// connections take turns.
func (p *peer) open(_ context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
	message, err := workload.NewMessage(o.Payload)
	if err != nil {
		return nil, nil, err
	}
	request := fromProto(message)
	if o.Fresh {
		return func(i int) workload.Call {
			return p.caller(o, request, func(call func(*conn) error) error {
				c, err := p.dial(o.Addr(i))
				if err != nil {
					return err
				}
				return errors.Join(call(c), c.transport.Close())
			})
		}, func() {}, nil
	}
	var all []*lines
	if o.Conns > 0 {
		all = []*lines{{p, make(chan line, o.Conns)}}
	} else {
		for range o.Callers {
			all = append(all, &lines{p, make(chan line, 1)})
		}
	}
	for i := range o.Connections() {
		c, err := p.dial(o.Addr(i))
		if err != nil {
			return nil, nil, fmt.Errorf("connect to %s: %w", o.Addr(i), err)
		}
		all[i%len(all)].idle <- line{o.Addr(i), c}
	}
	closing := func() {
		for _, l := range all {
			for range cap(l.idle) {
				if last := <-l.idle; last.conn != nil {
					_ = last.conn.transport.Close() // the program ends
				}
			}
		}
	}
	return func(i int) workload.Call { return p.caller(o, request, all[i%len(all)].use) }, closing, nil
}

// caller returns the calls of one caller.
func (p *peer) caller(o *workload.ClientOptions, request *benchmark.BenchmarkMessage, use func(func(*conn) error) error) workload.Call {
	if o.Workload == "add" {
		var number atomic.Int32
		return func(ctx context.Context) error {
			a := number.Add(1) % 1_000_000
			return use(func(c *conn) error {
				reply, err := c.math.Add(ctx, &benchmark.AddRequest{A: a, B: 7})
				if err == nil && reply.X != a+7 {
					err = workload.ErrWrong
				}
				return err
			})
		}
	}
	return func(ctx context.Context) error {
		return use(func(c *conn) error {
			reply, err := c.hello.Say(ctx, request)
			if err == nil && (reply.Field1 != workload.AnswerField1 || reply.Field2 != workload.AnswerField2) {
				err = workload.ErrWrong
			}
			return err
		})
	}
}
