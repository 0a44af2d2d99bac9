package workload

import (
	"context"
	"errors"
	"fmt"
)

// Conn is a client with its own connection, as in most frameworks. Its calls may be concurrent.
// The message of say is shared by all calls, and must not be modified.
type Conn interface {
	Say(ctx context.Context, in *BenchmarkMessage) (Said, error)
	Add(ctx context.Context, in *AddRequest) (*AddReply, error)
	Close() error
}

// A PerCaller is a Conn of which each caller has a view of its own, with what one goroutine can
// keep between its calls. A view's calls are made one at a time, and its Close is that of the
// connection.
type PerCaller interface {
	Conn
	Caller() Conn
}

// view returns what one caller calls.
func view(c Conn) Conn {
	if p, ok := c.(PerCaller); ok {
		return p.Caller()
	}
	return c
}

// AsyncConn is a Conn of an asynchronous API. What its methods return waits for the reply.
type AsyncConn interface {
	StartSay(ctx context.Context, in *BenchmarkMessage) func() (Said, error)
	StartAdd(ctx context.Context, in *AddRequest) func() (*AddReply, error)
	Close() error
}

// Open returns a Program's Open from a function that opens one connection: the callers share the
// configured number of connections, or each call opens its own. A connection is established when
// dial returns.
func Open(dial func(ctx context.Context, addr string) (Conn, error)) func(context.Context, *ClientOptions) (func(i int) Call, func(), error) {
	return openConns(dial, dial)
}

// OpenLazy is Open for clients that connect with their first call, which is one of add. Only the
// calls that have a connection of their own make it by themselves.
func OpenLazy(dial func(ctx context.Context, addr string) (Conn, error)) func(context.Context, *ClientOptions) (func(i int) Call, func(), error) {
	connect := func(ctx context.Context, addr string) (Conn, error) {
		c, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		if _, err := c.Add(ctx, &AddRequest{}); err != nil {
			return nil, errors.Join(fmt.Errorf("connect to %s: %w", addr, err), c.Close())
		}
		return c, nil
	}
	return openConns(connect, dial)
}

// openConns takes what makes the connections that are shared, and those of one call each.
func openConns(shared, fresh func(ctx context.Context, addr string) (Conn, error)) func(context.Context, *ClientOptions) (func(i int) Call, func(), error) {
	return func(ctx context.Context, o *ClientOptions) (func(i int) Call, func(), error) {
		request, err := newRequests(o)
		if err != nil {
			return nil, nil, err
		}
		conns, closing, err := dialAll(ctx, o, shared)
		if err != nil {
			return nil, nil, err
		}
		if o.Fresh { // whether the servers can be reached is known now
			closing()
			return func(i int) Call { return request.fresh(fresh, o.Addr(i)) }, func() {}, nil
		}
		return func(i int) Call { return request.calls(view(conns[i%len(conns)])) }, closing, nil
	}
}

// OpenAsync is Open for a Program's OpenAsync.
func OpenAsync(dial func(ctx context.Context, addr string) (AsyncConn, error)) func(context.Context, *ClientOptions) (func(i int) Start, func(), error) {
	return func(ctx context.Context, o *ClientOptions) (func(i int) Start, func(), error) {
		request, err := newRequests(o)
		if err != nil {
			return nil, nil, err
		}
		if o.Fresh {
			return nil, nil, errors.New("--fresh has a connection for each call and --async many calls on one: use one of them")
		}
		conns, closing, err := dialAll(ctx, o, dial)
		if err != nil {
			return nil, nil, err
		}
		return func(i int) Start { return request.starts(conns[i%len(conns)]) }, closing, nil
	}
}

// dialAll makes the connections that the callers share, spread over the servers.
func dialAll[C interface{ Close() error }](ctx context.Context, o *ClientOptions, dial func(ctx context.Context, addr string) (C, error)) ([]C, func(), error) {
	var conns []C
	closing := func() {
		for _, c := range conns {
			_ = c.Close() // the program is at its end, and a failed Close says nothing about its calls
		}
	}
	n := o.Connections()
	if o.Fresh {
		n = len(o.Addrs)
	}
	for i := range n {
		c, err := dial(ctx, o.Addr(i))
		if err != nil {
			closing()
			return nil, nil, err
		}
		conns = append(conns, c)
	}
	return conns, closing, nil
}

// requests creates the requests of the callers. They share the message of say, which is immutable:
// one per caller would grow the heap, which makes the garbage collector's work look smaller than
// it is.
type requests struct {
	say *BenchmarkMessage // nil: add
}

func newRequests(o *ClientOptions) (r requests, err error) {
	if o.Workload == "say" {
		r.say, err = NewMessage(o.Payload)
	}
	return r, err
}

// numbers returns the requests of add, one after another.
func numbers() func() *AddRequest {
	n := int32(-1)
	return func() *AddRequest {
		n = (n + 1) % 1_000_000
		return &AddRequest{A: n, B: 7}
	}
}

// calls returns a Call of its own for one goroutine.
func (r requests) calls(c Conn) Call {
	if r.say != nil {
		return func(ctx context.Context) error { return checkSay(c.Say(ctx, r.say)) }
	}
	next := numbers()
	return func(ctx context.Context) error {
		in := next()
		out, err := c.Add(ctx, in)
		return checkAdd(in, out, err)
	}
}

// starts returns a Start of its own for one goroutine.
func (r requests) starts(c AsyncConn) Start {
	if r.say != nil {
		return func(ctx context.Context) func() error {
			wait := c.StartSay(ctx, r.say)
			return func() error { return checkSay(wait()) }
		}
	}
	next := numbers()
	return func(ctx context.Context) func() error {
		in := next()
		wait := c.StartAdd(ctx, in)
		return func() error {
			out, err := wait()
			return checkAdd(in, out, err)
		}
	}
}

// fresh returns a Call that connects for each call.
func (r requests) fresh(dial func(ctx context.Context, addr string) (Conn, error), addr string) Call {
	c := new(redialed)
	call := r.calls(c)
	return func(ctx context.Context) error {
		conn, err := dial(ctx, addr)
		if err != nil {
			return err
		}
		c.Conn = view(conn)
		return errors.Join(call(ctx), c.Close())
	}
}

// redialed is the connection of the call at hand.
type redialed struct{ Conn }

func checkSay(out Said, err error) error {
	if err != nil {
		return err
	}
	return Check(out)
}

func checkAdd(in *AddRequest, out *AddReply, err error) error {
	if err != nil {
		return err
	}
	if out.GetX() != in.GetA()+in.GetB() {
		return ErrWrong
	}
	return nil
}
