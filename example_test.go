package anser_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// A server and a client that calls it.
func Example() {
	s := anser.NewServer()
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *Args) (*Reply, error) {
		return &Reply{C: in.A * in.B}, nil
	}, anser.Idempotent())
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Shutdown(context.Background())

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	reply, err := anser.Call[Reply](context.Background(), c, "Arith.Mul", &Args{A: 7, B: 8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.C)
	// Output: 56
}

// A contract that both sides share, a registry in between, and an error with its code.
func ExampleMethod() {
	const div anser.Method[Args, Reply] = "Arith.Div"
	reg := registry.NewMemory()
	defer reg.Close()

	s := anser.NewServer(silent, anser.Announce(reg, registry.Instance{Service: "arith"}))
	div.Handle(s, func(_ context.Context, in *Args) (*Reply, error) {
		if in.B == 0 {
			return nil, anser.Errorf(anser.InvalidArgument, "B is 0: give a divisor")
		}
		return &Reply{C: in.A / in.B}, nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Shutdown(context.Background())

	c, err := anser.Dial(l.Addr().String(), silent)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_, err = div.Call(context.Background(), c, &Args{A: 7})
	fmt.Println(errors.Is(err, anser.InvalidArgument), anser.OutcomeOf(err))
	// Output: true executed
}

func ExampleBind() {
	s := anser.NewServer(anser.NoSignals())
	s.RegisterFunc("Math.DivMod", func(_ context.Context, a, b int) (q, r int, err error) { return a / b, a % b, nil },
		anser.Params("(a, b) (q, r)"))
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	var divMod func(ctx context.Context, a, b int) (q, r int, err error)
	if err := anser.Bind(c, "Math.DivMod", &divMod); err != nil {
		log.Fatal(err)
	}
	q, r, err := divMod(context.Background(), 38, 7)
	fmt.Println(q, r, err)
	// Output: 5 3 <nil>
}

// A stream with a contract that both sides share: the client sends numbers, the handler their
// sums so far.
func ExampleStreamMethod() {
	const sums anser.StreamMethod[Args, Reply] = "Arith.Sums"
	s := anser.NewServer()
	sums.Handle(s, func(_ context.Context, st *anser.Stream[Reply, Args]) error {
		sum := 0
		for in, err := range st.All() {
			if err != nil {
				return err
			}
			sum += in.A
			if err := st.Send(&Reply{C: sum}); err != nil {
				return err
			}
		}
		return nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Shutdown(context.Background())

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	st, err := sums.Open(context.Background(), c)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	for n := range 4 {
		st.Send(&Args{A: n}) // Recv returns the error of a stream, too
	}
	st.CloseSend()
	for out, err := range st.All() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(out.C)
	}
	// Output:
	// 0
	// 1
	// 3
	// 6
}
