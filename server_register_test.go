package anser_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// Arith is a service.
type Arith struct{}

// Mul multiplies.
func (*Arith) Mul(in *Args, out *Reply) error {
	out.C = in.A * in.B
	return nil
}

func TestRegisterNilPointer(t *testing.T) {
	s := anser.NewServer(silent)
	if err := s.Register((*Arith)(nil)); err != nil {
		t.Fatal(err) // its methods work with a nil receiver
	}
	if _, ok := s.Stats().Methods["Arith.Mul"]; !ok {
		t.Error(s.Stats().Methods)
	}
}

// Shapes is a service with methods of every shape that can be served, and some that cannot.
type Shapes struct{ factor int }

// New has the shape of Handle.
func (s *Shapes) New(ctx context.Context, in *Args) (*Reply, error) {
	return &Reply{in.A * in.B * s.factor}, ctx.Err()
}

// Out fills its reply.
func (s *Shapes) Out(ctx context.Context, in *Args, out *Reply) error {
	out.C = in.A * in.B * s.factor
	return ctx.Err()
}

// Old has the shape of net/rpc.
func (s *Shapes) Old(in *Args, out *Reply) error {
	out.C = in.A * in.B * s.factor
	return nil
}

// Value takes its argument by value, as net/rpc allows.
func (s *Shapes) Value(in Args, out *Reply) error {
	out.C = in.A * in.B * s.factor
	return nil
}

// Map has a reply that must be allocated before it is filled in.
func (s *Shapes) Map(in *Args, out *map[string]int) error {
	(*out)["product"] = in.A * in.B
	return nil
}

// Fail returns an error.
func (s *Shapes) Fail(ctx context.Context, in *Args) (*Reply, error) {
	return nil, anser.NotFound
}

// FailOut returns an error in the other shape.
func (s *Shapes) FailOut(in *Args, out *Reply) error {
	out.C = 1
	return errors.New("no")
}

// Nil returns a nil reply.
func (s *Shapes) Nil(ctx context.Context, in *Args) (*Reply, error) { return nil, nil }

// The following cannot be served.

func (s *Shapes) None()                                                  {}
func (s *Shapes) NoError(in *Args, out *Reply)                           {}
func (s *Shapes) Many(a, b, c *Args) error                               { return nil }
func (s *Shapes) ByValue(ctx context.Context, in Args) (*Reply, error)   { return nil, nil }
func (s *Shapes) Plain(ctx context.Context, in *Args) (Reply, error)     { return Reply{}, nil }
func (s *Shapes) Variadic(ctx context.Context, in ...*Args) error        { return nil }
func (s *Shapes) Hidden(ctx context.Context, in *hidden) (*Reply, error) { return nil, nil }

type hidden struct{ A int }

func TestRegisterShapes(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	if err := s.Register(&Shapes{10}, anser.Idempotent()); err != nil {
		t.Fatal(err)
	}
	if err := s.RegisterName("Second.Service", &Shapes{100}); err != nil {
		t.Fatal(err)
	}
	if err := s.RegisterFunc("Free.Mul", mul); err != nil {
		t.Fatal(err)
	}
	if err := s.RegisterFunc("Free.Old", func(in Args, out *Reply) error {
		out.C = in.A + in.B
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	ctx := context.Background()
	for method, want := range map[string]int{
		"Shapes.New": 560, "Shapes.Out": 560, "Shapes.Old": 560, "Shapes.Value": 560, "Second.Service.New": 5600, "Free.Mul": 56, "Free.Old": 15,
	} {
		for range 2 { // every call has its own arguments
			if out, err := anser.Call[Reply](ctx, c, method, &Args{7, 8}); err != nil || out.C != want {
				t.Errorf("%s: %v, %v; want %d", method, out, err, want)
			}
		}
	}
	if out, err := anser.Call[map[string]int](ctx, c, "Shapes.Map", &Args{7, 8}); err != nil || (*out)["product"] != 56 {
		t.Error(out, err)
	}
	for method, want := range map[string]anser.Code{"Shapes.Fail": anser.NotFound, "Shapes.FailOut": anser.Unknown, "Shapes.Nil": anser.Internal} {
		_, err := anser.Call[Reply](ctx, c, method, &Args{})
		wantFault(t, err, want, anser.Executed)
	}
	for _, name := range []string{"None", "NoError", "Many", "ByValue", "Plain", "Variadic", "Hidden"} {
		if _, ok := s.Stats().Methods["Shapes."+name]; ok {
			t.Errorf("%s is served", name)
		}
	}
}

// Wrong is a service without a method that can be served.
type Wrong struct{}

func (Wrong) Mul(a, b int) int { return a * b }

// Empty has no methods at all.
type Empty struct{}

// ByPointer has its method on the pointer.
type ByPointer struct{}

func (*ByPointer) Mul(in *Args, out *Reply) error { return nil }

type unexported struct{}

func (*unexported) Mul(in *Args, out *Reply) error { return nil }

const shapes = "want func(context.Context, *Args) (*Reply, error), func(context.Context, *Args, *Reply) error, func(*Args, *Reply) error or func(context.Context, A, B, …) (C, D, …, error)"

func TestRegisterMistakes(t *testing.T) {
	for want, add := range map[string]func(s *anser.Server) error{
		"register: the service is nil: pass a pointer such as new(Arith)":                                                                              func(s *anser.Server) error { return s.Register(nil) },
		`register "Arith": the service is nil: pass a pointer such as new(Arith)`:                                                                      func(s *anser.Server) error { return s.RegisterName("Arith", nil) },
		"register: type *anser_test.unexported is not exported: export it, or use RegisterName":                                                        func(s *anser.Server) error { return s.Register(new(unexported)) },
		`register "Wrong": type *anser_test.Wrong has no method that can be served: Mul: the signature func(int, int) int cannot be served: ` + shapes: func(s *anser.Server) error { return s.Register(new(Wrong)) },
		`register "Empty": type *anser_test.Empty has no exported methods`:                                                                             func(s *anser.Server) error { return s.Register(new(Empty)) },
		`register "ByPointer": type anser_test.ByPointer has no exported methods, but *anser_test.ByPointer has: pass a pointer`:                       func(s *anser.Server) error { return s.Register(ByPointer{}) },
		`method "Arith.Mul" is there already: give the second one another name`: func(s *anser.Server) error {
			s.Register(new(Arith))
			return s.Register(new(Arith))
		},
		`register "Arith.Mul": int is not a function: ` + shapes:   func(s *anser.Server) error { return s.RegisterFunc("Arith.Mul", 7) },
		`register "Arith.Mul": <nil> is not a function: ` + shapes: func(s *anser.Server) error { return s.RegisterFunc("Arith.Mul", nil) },
		`register "Arith.Mul": func() is not a function`:           func(s *anser.Server) error { return s.RegisterFunc("Arith.Mul", (func())(nil)) },
		`register "Arith.Mul": the signature func() cannot be served: ` + shapes: func(s *anser.Server) error {
			return s.RegisterFunc("Arith.Mul", func() {})
		},
		`register "Arith.Mul": the request type anser_test.Args is not a pointer: ` + shapes: func(s *anser.Server) error {
			return s.RegisterFunc("Arith.Mul", (&Shapes{}).ByValue)
		},
		`register "Arith.Mul": the reply type anser_test.Reply is not a pointer: ` + shapes: func(s *anser.Server) error {
			return s.RegisterFunc("Arith.Mul", (&Shapes{}).Plain)
		},
		`register "Arith.Mul": the type anser_test.hidden is not exported`: func(s *anser.Server) error {
			return s.RegisterFunc("Arith.Mul", (&Shapes{}).Hidden)
		},
		`method name "mul" has not the form Service.Method`: func(s *anser.Server) error { return s.RegisterFunc("mul", mul) },
	} {
		s := anser.NewServer(silent)
		err := add(s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
			continue
		}
		if e := s.Serve(new(ansertest.Network).Listen("a:1")); e == nil || !strings.Contains(e.Error(), err.Error()) {
			t.Errorf("Serve: %v", e)
		}
		s.Close()
	}
}
