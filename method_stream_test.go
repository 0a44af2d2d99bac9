package anser_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/anser-rpc/anser"
)

const (
	countTo anser.ServerStreamMethod[Args, Reply] = "Numbers.CountTo"
	sum     anser.ClientStreamMethod[Args, Reply] = "Numbers.Sum"
)

// serveNumbers serves countTo, which fails above 100, and sum, which ends at a negative number.
func serveNumbers(t *testing.T) *anser.Client {
	t.Helper()
	s := anser.NewServer(silent)
	err := errors.Join(
		countTo.Handle(s, func(_ context.Context, in *Args, out anser.Sender[Reply]) error {
			for i := range in.A {
				if i == 100 {
					return anser.Errorf(anser.OutOfRange, "more than 100")
				}
				if err := out.Send(&Reply{i}); err != nil {
					return err
				}
			}
			return nil
		}),
		sum.Handle(s, func(_ context.Context, in anser.Receiver[Args]) (*Reply, error) {
			out := new(Reply)
			for m, err := range in.All() {
				switch {
				case err != nil:
					return nil, err
				case m.A == 13:
					return nil, anser.Errorf(anser.InvalidArgument, "13")
				case m.A == 0:
					return nil, nil
				case m.A < 0:
					return out, nil
				}
				out.C += m.A
			}
			return out, nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	run(t, s, l)
	return dial(t, l.Addr().String())
}

func TestServerStreamMethod(t *testing.T) {
	c := serveNumbers(t)
	st, err := countTo.Open(t.Context(), c, &Args{A: 3})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for m, err := range st.All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.C)
	}
	if !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("received %v", got)
	}
	st, err = countTo.Open(t.Context(), c, &Args{A: 1000})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range st.All() {
		if err == nil {
			n++
		}
	}
	if n != 100 || anser.CodeOf(err) != anser.OutOfRange {
		t.Errorf("received %d messages and then %v", n, err)
	}
	if _, err := countTo.Open(t.Context(), c, nil); anser.CodeOf(err) != anser.InvalidArgument {
		t.Errorf("a nil request: %v", err)
	}
}

// A client that opens a stream of the server without a request is told so.
func TestServerStreamWithoutRequest(t *testing.T) {
	c := serveNumbers(t)
	st, err := anser.Open[Args, Reply](t.Context(), c, string(countTo))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Recv(); anser.CodeOf(err) != anser.InvalidArgument {
		t.Errorf("Recv: %v", err)
	}
}

func TestClientStreamMethod(t *testing.T) {
	c := serveNumbers(t)
	for _, test := range []struct {
		name  string
		sends []int
		want  int
		code  anser.Code
	}{
		{"all", []int{1, 2, 3}, 6, anser.OK},
		{"none", nil, 0, anser.OK},
		{"early", []int{1, 2, -1}, 3, anser.OK},
		{"error", []int{1, 13}, 0, anser.InvalidArgument},
		{"no reply", []int{0}, 0, anser.Internal},
	} {
		t.Run(test.name, func(t *testing.T) {
			st, err := sum.Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range test.sends {
				if err := st.Send(&Args{A: n}); err != nil {
					t.Fatal(err)
				}
			}
			out, err := st.CloseAndRecv()
			if anser.CodeOf(err) != test.code {
				t.Fatalf("the error is %v, want %v", err, test.code)
			}
			if err == nil && out.C != test.want {
				t.Errorf("the sum is %d, want %d", out.C, test.want)
			}
		})
	}
}

// A handler may answer before it has all messages: Send returns io.EOF then.
func TestClientStreamAnsweredEarly(t *testing.T) {
	c := serveNumbers(t)
	st, err := sum.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		err = st.Send(&Args{A: -1})
	}
	if err != io.EOF {
		t.Errorf("Send: %v", err)
	}
	if out, err := st.CloseAndRecv(); err != nil || out.C != 0 {
		t.Errorf("the reply is %v, %v", out, err)
	}
}

// A server whose stream has two replies, or none, does not keep the contract of the method.
func TestClientStreamWithoutOneReply(t *testing.T) {
	s := anser.NewServer(silent)
	err := anser.HandleStream(s, string(sum), func(_ context.Context, st *anser.Stream[Reply, Args]) error {
		in, err := st.Recv()
		for err == nil && in.A > 0 {
			err = st.Send(new(Reply))
			in.A--
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	run(t, s, l)
	c := dial(t, l.Addr().String())
	for _, n := range []int{0, 2} {
		st, err := sum.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Send(&Args{A: n}); err != nil {
			t.Fatal(err)
		}
		if _, err := st.CloseAndRecv(); anser.CodeOf(err) != anser.Internal {
			t.Errorf("%d replies: %v", n, err)
		}
	}
}
