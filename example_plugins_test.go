package anser_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"strings"
	"sync/atomic"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/registry"
)

// pair is a server on a free port and its client.
type pair struct {
	server *anser.Server
	client *anser.Client
}

func newPair(server []anser.ServerOption, client []anser.DialOption) *pair {
	s := anser.NewServer(server...)
	anser.Handle(s, "Arith.Mul", mul)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return newPairOn(s, l, client)
}

func newPairOn(s *anser.Server, l net.Listener, client []anser.DialOption) *pair {
	go s.Serve(l)
	c, err := anser.Dial(l.Addr().String(), client...)
	if err != nil {
		log.Fatal(err)
	}
	return &pair{s, c}
}

func (p *pair) mul(ctx context.Context) {
	reply, err := anser.Call[Reply](ctx, p.client, "Arith.Mul", &Args{A: 7, B: 8})
	if e, ok := errors.AsType[*anser.Error](err); ok {
		fmt.Println(e.Code, e.Message)
	} else {
		fmt.Println("7 * 8 =", reply.C)
	}
}

func (p *pair) close() {
	p.client.Close()
	p.server.Close()
}

// An interceptor of a server sees the decoded request and the reply, and may change both.
func ExampleInterceptor_server() {
	double := func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			in := inv.Request.(*Args)
			if in.A > 100 {
				return anser.Errorf(anser.OutOfRange, "%d is too much", in.A)
			}
			if err := next(ctx, inv); err != nil {
				return err
			}
			inv.Reply.(*Reply).C *= 2
			return nil
		}
	}
	p := newPair([]anser.ServerOption{anser.Intercept(double)}, nil)
	defer p.close()
	p.mul(context.Background())
	// Output: 7 * 8 = 112
}

// An interceptor of a client surrounds all attempts of a call. It may add metadata, look at the
// reply, or answer by itself.
func ExampleInterceptor_client() {
	sign := func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			ctx = anser.WithMetadata(ctx, anser.Metadata{"user": "otto"})
			err := next(ctx, inv)
			fmt.Println(inv.Method, inv.Reply.(*Reply).C, err)
			return err
		}
	}
	p := newPair(nil, []anser.DialOption{anser.Intercept(sign)})
	defer p.close()
	p.mul(context.Background())
	// Output:
	// Arith.Mul 56 <nil>
	// 7 * 8 = 56
}

// A list of the methods of a server, and a rule for their names.
func ExampleObserver_methods() {
	s := anser.NewServer(anser.Observe(anser.Observer{MethodAdded: func(name string) error {
		if strings.HasPrefix(name, "Test.") {
			return errors.New("tests have no place in production")
		}
		fmt.Println("added", name)
		return nil
	}}))
	anser.Handle(s, "Arith.Mul", mul)
	fmt.Println(anser.Handle(s, "Test.Mul", mul))
	// Output:
	// added Arith.Mul
	// method "Test.Mul" is refused: tests have no place in production
}

// The results of registering and deregistering a server.
func ExampleObserver_registry() {
	done := make(chan struct{})
	s := anser.NewServer(
		anser.Announce(registry.NewMemory(), registry.Instance{Service: "arith"}),
		anser.Observe(anser.Observer{
			Announced: func(in registry.Instance, err error) {
				fmt.Println("announced", in.Service, err)
				close(done)
			},
			Withdrawn: func(in registry.Instance, err error) { fmt.Println("withdrawn", in.Service, err) },
		}),
	)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	<-done
	s.Close()
	// Output:
	// announced arith <nil>
	// withdrawn arith <nil>
}

// A server that accepts connections only from its own machine.
func ExampleObserver_allowList() {
	local := anser.Observer{ConnOpened: func(c anser.ConnInfo) error {
		if a, ok := c.Peer.Addr.(*net.TCPAddr); ok && !a.IP.IsLoopback() {
			return fmt.Errorf("%v is not on the list", a.IP)
		}
		return nil
	}}
	p := newPair([]anser.ServerOption{anser.Observe(local)}, nil)
	defer p.close()
	p.mul(context.Background())
	// Output: 7 * 8 = 56
}

// Connections that are opened and closed.
func ExampleObserver_connections() {
	p := newPair(nil, []anser.DialOption{anser.Conns(1), anser.Observe(anser.Observer{
		ConnOpened: func(c anser.ConnInfo) error { fmt.Println("opened", c.Peer.Addr.Network()); return nil },
		ConnClosed: func(_ anser.ConnInfo, err error) { fmt.Println("closed", err) },
		ConnFailed: func(_ anser.ConnInfo, err error) { fmt.Println("failed", err) },
	})})
	p.mul(context.Background())
	p.close()
	// Output:
	// opened tcp
	// 7 * 8 = 56
	// closed <nil>
}

// A server that checks a token before it decodes anything.
func ExampleObserver_authentication() {
	guard := anser.Observer{Request: func(ctx context.Context, m anser.MessageInfo) error {
		if anser.MetadataFrom(ctx).Get("token") != "open sesame" {
			return anser.Errorf(anser.Unauthenticated, "%s needs a token", m.Method)
		}
		return nil
	}}
	p := newPair([]anser.ServerOption{anser.Observe(guard)}, nil)
	defer p.close()
	p.mul(context.Background())
	p.mul(anser.WithMetadata(context.Background(), anser.Metadata{"token": "open sesame"}))
	// Output:
	// unauthenticated Arith.Mul needs a token
	// 7 * 8 = 56
}

// The bytes that each method receives and sends.
func ExampleObserver_traffic() {
	var in, out atomic.Int64
	p := newPair([]anser.ServerOption{anser.Observe(anser.Observer{
		Request: func(_ context.Context, m anser.MessageInfo) error { in.Add(int64(m.Bytes)); return nil },
		Reply:   func(_ context.Context, m anser.MessageInfo) { out.Add(int64(m.Bytes)) },
	})}, []anser.DialOption{anser.Codec(new(codec.JSON))})
	defer p.close()
	p.mul(context.Background())
	fmt.Println(in.Load(), "bytes in,", out.Load(), "bytes out")
	// Output:
	// 7 * 8 = 56
	// 13 bytes in, 8 bytes out
}

// counted counts the bytes read and written.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

type countedListener struct {
	net.Listener
	bytes *atomic.Int64
}

func (l countedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return counted{nc, l.bytes}, nil
}

// A listener of your own may wrap connections.
func ExampleServer_Serve_wrapped() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := anser.NewServer()
	anser.Handle(s, "Arith.Mul", mul)
	var bytes atomic.Int64
	p := newPairOn(s, countedListener{l, &bytes}, nil)
	defer p.close()
	p.mul(context.Background())
	fmt.Println(bytes.Load() > 0)
	// Output:
	// 7 * 8 = 56
	// true
}

// A client may make its connections with a function of its own.
func ExampleDialer() {
	var bytes atomic.Int64
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return counted{nc, &bytes}, nil
	}
	p := newPair(nil, []anser.DialOption{anser.Dialer(dial)})
	defer p.close()
	p.mul(context.Background())
	fmt.Println(bytes.Load() > 0)
	// Output:
	// 7 * 8 = 56
	// true
}

// sparing leaves out instances that its own test finds unfit.
type sparing struct {
	balance.Balancer
	fit func(*registry.Instance) bool
}

func (s sparing) Build(endpoints []*balance.Endpoint) balance.Picker {
	var fit []*balance.Endpoint
	for _, e := range endpoints {
		if s.fit(e.Instance()) {
			fit = append(fit, e)
		}
	}
	return s.Balancer.Build(fit)
}

// A balancer that wraps another one decides which instances it may choose from.
func ExampleBalancer() {
	tested := func(in *registry.Instance) bool { return in.Version != "canary" }
	p := newPair(nil, []anser.DialOption{anser.Balancer(sparing{balance.P2C(), tested})})
	defer p.close()
	p.mul(context.Background())
	// Output: 7 * 8 = 56
}

// upside encodes and decodes numbers in an unusual way.
type upside struct{ *codec.JSON }

func (upside) ID() uint8    { return codec.FirstFree }
func (upside) Name() string { return "upside" }

// A codec of your own has a number from codec.FirstFree on, and both sides must have it.
func ExampleCodecs() {
	p := newPair([]anser.ServerOption{anser.Codecs(upside{new(codec.JSON)})}, []anser.DialOption{anser.Codecs(upside{new(codec.JSON)}), anser.Codec(upside{new(codec.JSON)})})
	defer p.close()
	p.mul(context.Background())
	// Output: 7 * 8 = 56
}

// A server in front forwards the calls of a service, and tells the server behind its caller.
func ExampleForward() {
	network := new(ansertest.Network)
	behind := anser.NewServer(anser.NoSignals())
	defer behind.Close()
	anser.Handle(behind, "Arith.Mul", func(ctx context.Context, in *Args) (*Reply, error) {
		fmt.Println("called in", anser.MetadataFrom(ctx)["region"])
		return &Reply{in.A * in.B}, nil
	})
	go behind.Serve(network.Listen("behind:1"))
	arith, err := anser.Dial("behind:1", anser.Dialer(network.Dial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer arith.Close()

	front := anser.NewServer(anser.NoSignals(), anser.Forward(func(_ context.Context, call *anser.ForwardCall) (*anser.Client, string, error) {
		if !strings.HasPrefix(call.Method, "Arith.") {
			return nil, "", nil // not served
		}
		call.Set = anser.Metadata{"region": "eu"}
		return arith, "", nil
	}))
	defer front.Close()
	go front.Serve(network.Listen("front:1"))
	c, err := anser.Dial("front:1", anser.Dialer(network.Dial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	reply, err := anser.Call[Reply](context.Background(), c, "Arith.Mul", &Args{A: 7, B: 8})
	fmt.Println(reply, err)
	_, err = anser.Call[Reply](context.Background(), c, "Text.Mul", &Args{A: 7, B: 8})
	fmt.Println(anser.CodeOf(err), anser.OutcomeOf(err))
	// Output:
	// called in eu
	// &{56} <nil>
	// unimplemented refused
}
