package anser_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// notes records events in order.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list = nil
	return list
}

// around returns an interceptor that records the way in and out.
func (n *notes) around(name string) anser.Interceptor {
	return func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			n.add(name + " in")
			err := next(ctx, inv)
			n.add(name + " out")
			return err
		}
	}
}

func TestOrderOfInterceptors(t *testing.T) {
	network, n := new(ansertest.Network), new(notes)
	s := anser.NewServer(silent, anser.Intercept(n.around("s1"), n.around("s2")), anser.Intercept(n.around("s3")))
	anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		n.add("handler")
		return in, nil
	})
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Intercept(n.around("c1")), anser.Intercept(n.around("c2")))
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Fatal(out, err)
	}
	want := []string{"c1 in", "c2 in", "s1 in", "s2 in", "s3 in", "handler", "s3 out", "s2 out", "s1 out", "c2 out", "c1 out"}
	if got := n.take(); !slices.Equal(got, want) {
		t.Error(got)
	}
	_, err := call(context.Background(), c, anser.MethodsName, "")
	wantFault(t, err, anser.InvalidArgument, anser.Refused) // raw bytes to a method for structs
	if got := n.take(); !slices.Equal(got, []string{"c1 in", "c2 in", "c2 out", "c1 out"}) {
		t.Error("built-in methods have no interceptors on the server:", got)
	}
}

// with returns an interceptor that runs f instead of the call.
func with(f func(ctx context.Context, inv *anser.Invocation, next anser.Func) error) anser.Interceptor {
	return func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error { return f(ctx, inv, next) }
	}
}

// An interceptor can inspect the call, change it, answer it, or refuse it, on either side.
func TestInterceptors(t *testing.T) {
	network := new(ansertest.Network)
	ran := new(notes)
	serverSide := with(func(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
		if !inv.Server || inv.Method != "Arith.Mul" {
			t.Errorf("%+v", inv)
		}
		in := inv.Request.(*Args)
		switch in.A {
		case 1:
			inv.Reply = &Reply{C: -1}
			return nil
		case 2:
			return anser.Refuse(anser.PermissionDenied, "not %d", in.A)
		case 3:
			return errors.New("failed")
		case 4:
			inv.Request = &Args{A: 40, B: in.B}
		case 5:
			return nil // neither a reply nor an error
		case 6:
			if err := next(ctx, inv); err != nil {
				return err
			}
			inv.Reply = &Reply{C: inv.Reply.(*Reply).C + 1000}
			return nil
		}
		return next(ctx, inv)
	})
	s := anser.NewServer(silent, anser.Intercept(serverSide))
	anser.Handle(s, "Arith.Mul", func(ctx context.Context, in *Args) (*Reply, error) {
		ran.add("ran")
		return mul(ctx, in)
	}, anser.Alias("Old.Mul"))
	run(t, s, network.Listen("a:1"))
	clientSide := with(func(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
		if inv.Server {
			t.Errorf("%+v", inv)
		}
		if in := inv.Request.(*Args); in.A == 7 {
			inv.Reply.(*Reply).C = 77
			return nil
		}
		if inv.Method == "Arith.Redirect" {
			inv.Method = "Old.Mul"
		}
		return next(ctx, inv)
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Intercept(clientSide))
	for _, test := range []struct {
		method string
		a      int
		want   int
		runs   int
	}{
		{"Arith.Mul", 1, -1, 0},
		{"Arith.Mul", 4, 80, 1},
		{"Arith.Mul", 6, 1012, 1},
		{"Arith.Mul", 7, 77, 0},
		{"Arith.Mul", 8, 16, 1},
		{"Arith.Redirect", 8, 16, 1},
	} {
		out, err := anser.Call[Reply](context.Background(), c, test.method, &Args{A: test.a, B: 2})
		if err != nil || out.C != test.want {
			t.Errorf("%+v: %v, %v", test, out, err)
		}
		if n := len(ran.take()); n != test.runs {
			t.Errorf("%+v: the handler ran %d times", test, n)
		}
	}
	_, err := anser.Call[Reply](context.Background(), c, "Arith.Mul", &Args{A: 2})
	if e := wantFault(t, err, anser.PermissionDenied, anser.Refused); e.Message != "not 2" {
		t.Error(err)
	}
	_, err = anser.Call[Reply](context.Background(), c, "Arith.Mul", &Args{A: 3})
	wantFault(t, err, anser.Unknown, anser.Executed)
	_, err = anser.Call[Reply](context.Background(), c, "Arith.Mul", &Args{A: 5})
	if e := wantFault(t, err, anser.Internal, anser.Executed); !strings.Contains(e.Message, "neither a reply nor an error") {
		t.Error(err)
	}
}

// An interceptor of the client surrounds all attempts of a call.
func TestInterceptorSurroundsAllAttempts(t *testing.T) {
	network, n := new(ansertest.Network), new(notes)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		n.add("attempt")
		if anser.AttemptFrom(ctx) < 2 {
			return nil, anser.Aborted
		}
		return in, nil
	}})
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Intercept(n.around("c")), anser.Idempotent(), anser.RetryOn(anser.Aborted))
	if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
		t.Fatal(err)
	}
	if got := n.take(); !slices.Equal(got, []string{"c in", "attempt", "attempt", "attempt", "c out"}) {
		t.Error(got)
	}
}

// The options of a call reach it through the interceptors.
func TestOptionsPassInterceptors(t *testing.T) {
	network, n := new(ansertest.Network), new(notes)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		return in, anser.SetTrailer(ctx, "k", "v")
	}})
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Intercept(n.around("c")))
	var md anser.Metadata
	if _, err := call(context.Background(), c, "Echo.Say", "", anser.Trailer(&md)); err != nil || md["k"] != "v" {
		t.Error(md, err)
	}
}

// An Invocation that an interceptor makes itself continues with the next interceptor, not with the
// first.
func TestInterceptorMakesAnInvocation(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	passes := 0
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Intercept(with(func(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
		if passes++; passes > 1 {
			return errors.New("the interceptors ran again")
		}
		return next(ctx, &anser.Invocation{Method: "Echo.Say", Request: inv.Request, Reply: inv.Reply})
	})))
	if out, err := call(context.Background(), c, "Echo.Other", "hello"); out != "hello" || err != nil {
		t.Fatal(out, err)
	}
}

// A panic of an interceptor fails its call, on the client as on the server, and does not end a
// process that makes calls with Go.
func TestPanicOfAClientsInterceptor(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	var log syncBuffer
	c, err := anser.Dial("a:1", anser.Dialer(network.Dial), anser.NoSnapshot(), anser.Logger(slog.New(slog.NewTextHandler(&log, nil))),
		anser.Intercept(with(func(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
			err := next(ctx, inv)
			if string(*inv.Request.(*[]byte)) == "panic" {
				panic("secret")
			}
			return err
		})))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = anser.Go[[]byte](context.Background(), c, "Echo.Say", text("panic")).Wait()
	e := wantFault(t, err, anser.Internal, anser.OutcomeUnknown)
	if !strings.Contains(e.Message, "an interceptor panicked; the client's log has the details under id ") || strings.Contains(err.Error(), "secret") || e.Method != "Echo.Say" {
		t.Error(err)
	}
	if id := e.Message[len(e.Message)-10:]; !strings.Contains(log.String(), "id="+id) || !strings.Contains(log.String(), "secret") {
		t.Error(log.String())
	}
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Error(out, err)
	}
}
