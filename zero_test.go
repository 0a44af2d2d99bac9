package anser_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
)

// misuses are ways to use values that are nil or were not made by their constructor, each of
// which must return an error.
func misuses(c *anser.Client, s *anser.Server, l net.Listener) map[string]func() error {
	var none context.Context // nil
	ctx := context.Background()
	in := new(Args)
	first := func(_ any, err error) error { return err }
	var bound func(ctx context.Context, in *Args) (*Reply, error)
	var tuple func(ctx context.Context, a, b int) (int, error)
	calls := map[string]func() error{
		"Handle nil":         func() error { return anser.Handle[Args, Reply](anser.NewServer(silent), "A.B", nil) },
		"Handle nil option":  func() error { return anser.Handle(anser.NewServer(silent), "A.B", mul, nil) },
		"HandleOneway nil":   func() error { return anser.HandleOneway[Args](anser.NewServer(silent), "A.B", nil) },
		"HandleStream nil":   func() error { return anser.HandleStream[Args, Reply](anser.NewServer(silent), "A.B", nil) },
		"Register nil":       func() error { return anser.NewServer(silent).Register(nil) },
		"RegisterName nil":   func() error { return anser.NewServer(silent).RegisterName("A", nil) },
		"RegisterFunc nil":   func() error { return anser.NewServer(silent).RegisterFunc("A.B", nil) },
		"Serve nil":          func() error { return s.Serve(nil) },
		"Shutdown nil":       func() error { return s.Shutdown(none) },
		"NewServer nil":      func() error { return anser.NewServer(nil, silent).ListenAndServe("127.0.0.1:0") },
		"Logger nil":         func() error { return anser.NewServer(anser.Logger(nil)).ListenAndServe("127.0.0.1:0") },
		"Dial nil":           func() error { return first(anser.Dial("127.0.0.1:1", nil)) },
		"Dial Scheme":        func() error { return first(anser.Dial("x://y/z", registry.Scheme{Name: "x"})) },
		"Dial Transport":     func() error { return first(anser.Dial("x://y:1", anser.Transport{Scheme: "x"})) },
		"Dial Balancer":      func() error { return first(anser.Dial("127.0.0.1:1", anser.Balancer(nil))) },
		"Dial Handlers":      func() error { return first(anser.Dial("127.0.0.1:1", anser.Handlers(nil))) },
		"Dial Handlers zero": func() error { return first(anser.Dial("127.0.0.1:1", anser.Handlers(new(anser.Server)))) },
		"Bind nil":           func() error { return anser.Bind(c, "A.B", nil) },
		"Call nil request":   func() error { return first(anser.Call[Reply, Args](ctx, c, "A.B", nil)) },
		"SetTrailer nil":     func() error { return anser.SetTrailer(none, "key", "value") },
		"Call nil option":    func() error { return first(anser.Call[Reply](ctx, c, "A.B", in, nil)) },
	}
	for name, s := range map[string]*anser.Server{"nil server: ": nil, "zero server: ": new(anser.Server)} {
		calls[name+"Handle"] = func() error { return anser.Handle(s, "A.B", mul) }
		calls[name+"Handle nil"] = func() error { return anser.Handle[Args, Reply](s, "A.B", nil) }
		calls[name+"Register"] = func() error { return s.Register(new(net.Dialer)) }
		calls[name+"RegisterFunc"] = func() error { return s.RegisterFunc("A.B", mul) }
		calls[name+"Listen"] = func() error { return first(s.Listen("127.0.0.1:0")) }
		calls[name+"ListenAndServe"] = func() error { return s.ListenAndServe("127.0.0.1:0") }
		calls[name+"Serve"] = func() error { return s.Serve(l) }
		calls[name+"Shutdown"] = func() error { return s.Shutdown(ctx) }
		calls[name+"Close"] = func() error { return s.Close() }
	}
	for name, c := range map[string]*anser.Client{"nil client: ": nil, "zero client: ": new(anser.Client)} {
		calls[name+"Bind"] = func() error { return anser.Bind(c, "A.B", &bound) }
		calls[name+"Close"] = func() error { return c.Close() }
		addCalls(calls, name, ctx, c)
	}
	addCalls(calls, "nil context: ", none, c)
	if anser.Bind(c, "A.B", &bound) == nil { // else the test of the table finds nothing to call
		calls["nil context: bound"] = func() error { return first(bound(none, in)) }
	}
	if anser.Bind(c, "A.B", &tuple) == nil { // else the test of the table finds nothing to call
		calls["nil context: tuple"] = func() error { return first(tuple(none, 1, 2)) }
	}
	return calls
}

// addCalls adds the ways to call.
func addCalls(calls map[string]func() error, name string, ctx context.Context, c *anser.Client) {
	in, first := new(Args), func(_ any, err error) error { return err }
	calls[name+"Call"] = func() error { return first(anser.Call[Reply](ctx, c, "A.B", in)) }
	calls[name+"Client.Call"] = func() error { return c.Call(ctx, "A.B", in, new(Reply)) }
	calls[name+"Go"] = func() error { return first(anser.Go[Reply](ctx, c, "A.B", in).Wait()) }
	calls[name+"Send"] = func() error { return anser.Send(ctx, c, "A.B", in) }
	calls[name+"Open"] = func() error { return first(anser.Open[Args, Reply](ctx, c, "A.B")) }
	calls[name+"OpenWith"] = func() error { return first(anser.OpenWith[Args, Reply](ctx, c, "A.B", in)) }
	calls[name+"Instances"] = func() error { return first(c.Instances(ctx)) }
	calls[name+"Explain"] = func() error { return first(c.Explain(ctx, "A.B")) }
	for _, mode := range []anser.FailMode{anser.Failback, anser.Backup, anser.Fork} {
		calls[name+mode.String()] = func() error { return first(anser.Call[Reply](ctx, c, "A.B", in, anser.WithFailMode(mode))) }
	}
}

// Misuse is an error and never a panic.
func TestMisuse(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	defer s.Close()
	c := dial(t, "127.0.0.1:1")
	for name, misuse := range misuses(c, s, network.Listen("a:1")) {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v", p)
				}
			}()
			if err := misuse(); err == nil || errors.Is(err, anser.Unavailable) {
				t.Errorf("%v; want an error of the misuse", err)
			}
		})
	}
	// Methods that return no error do nothing.
	for _, s := range []*anser.Server{nil, new(anser.Server)} {
		s.SetAddresses(nil, nil)
		if len(s.Addrs()) != 0 || len(s.Sessions()) != 0 || s.Stats().Conns != 0 {
			t.Error("a server that was not made has something")
		}
		if n, failed := s.Broadcast(context.Background(), "A.B", new(Args), nil); n != 0 || failed != nil {
			t.Error(n, failed)
		}
	}
	for _, c := range []*anser.Client{nil, new(anser.Client)} {
		if len(c.Status().Instances) != 0 {
			t.Error("a client that was not made has instances")
		}
	}
	var nowhere context.Context // nil
	anser.PeerFrom(nowhere)
	anser.SessionFrom(nowhere)
	anser.TraceFrom(nowhere)
	if anser.IdentityFrom(nowhere) != nil || anser.MetadataFrom(nowhere) != nil || anser.OutgoingMetadata(nowhere) != nil ||
		anser.OutgoingValue(nowhere, "key")+anser.IdempotencyKeyFrom(nowhere) != "" || anser.AttemptFrom(nowhere) != 0 || anser.PriorityFrom(nowhere) != anser.Normal {
		t.Error("a nil context has something")
	}
	// The call with such a context fails.
	if anser.WithMetadata(nowhere, nil) != nil || anser.WithTrace(nowhere, anser.Trace{}) != nil || anser.WithPriority(nowhere, anser.Low) != nil {
		t.Error("a nil context became one")
	}
	var none *anser.Error
	if none.Error() != "<nil>" {
		t.Error(none.Error())
	}
}

// The zero values of structs that a program may make work.
func TestZeroStructs(t *testing.T) {
	if e := new(anser.Error); e.Error() != "" || e.Unwrap() != nil || errors.Is(e, anser.NotFound) || !errors.Is(e.WithRetryAfter(1).WithDetails(nil), anser.OK) {
		t.Errorf("an error has %+v", e)
	}
	if new(anser.Identity).In("operators") {
		t.Error("an identity without groups is in one")
	}
	inv := new(anser.Invocation)
	inv.SetTimeout(1)
	inv.SetAttempts(1)
	inv.SetMode(anser.Failfast)
	inv.SetTrailer(anser.Metadata{"key": "value"})
	inv.OnMessage(nil)
	if d := inv.Detach(nil, nil, nil); d.Codec() != nil || d.Timeout() != 0 {
		t.Errorf("an invocation has %+v", d)
	}
}
