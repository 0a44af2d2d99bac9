package anser_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
)

// addWord returns an interceptor that adds a word for each call.
func addWord(words *[]string, mu *sync.Mutex, word string) anser.Interceptor {
	return func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			mu.Lock()
			*words = append(*words, word+" "+inv.Method)
			mu.Unlock()
			return next(ctx, inv)
		}
	}
}

func TestSampled(t *testing.T) {
	var mu sync.Mutex
	var words []string
	is := func(name string) func(string) bool {
		return func(method string) bool { return strings.HasSuffix(method, name) }
	}
	s := anser.NewServer(
		anser.Intercept(addWord(&words, &mu, "all")),
		anser.Sampled(is("Neg"), addWord(&words, &mu, "first")),
		anser.Sampled(is("g"), addWord(&words, &mu, "second")))
	for _, name := range []string{"Arith.Neg", "Arith.Neg2", "Arith.Log"} {
		anser.Handle(s, name, func(_ context.Context, in *int) (*int, error) { return new(-*in), nil })
	}
	c := dialServer(t, s)
	for _, name := range []string{"Arith.Neg", "Arith.Neg2", "Arith.Log"} {
		if out, err := anser.Call[int](t.Context(), c, name, new(4)); err != nil || *out != -4 {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
	want := []string{"first Arith.Neg", "second Arith.Neg", "all Arith.Neg", "all Arith.Neg2", "second Arith.Log", "all Arith.Log"}
	if !slices.Equal(words, want) {
		t.Errorf("%q, want %q", words, want)
	}
}

func TestSampledMisuse(t *testing.T) {
	pass := func(next anser.Func) anser.Func { return next }
	all := func(string) bool { return true }
	for name, opt := range map[string]anser.ServerOption{"function": anser.Sampled(nil, pass), "interceptor": anser.Sampled(all, nil)} {
		if err := anser.NewServer(opt).ListenAndServe("127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "the "+name+" is nil") {
			t.Errorf("%v", err)
		}
	}
	many := make([]anser.ServerOption, 9)
	for i := range many {
		many[i] = anser.Sampled(all, pass)
	}
	if err := anser.NewServer(many...).ListenAndServe("127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "more than 8 times") {
		t.Errorf("%v", err)
	}
}

// A call that is not chosen costs no allocation on the server.
func TestSampledAllocations(t *testing.T) {
	count := func(opts ...anser.ServerOption) float64 {
		s := anser.NewServer(append(opts, silent)...)
		anser.Handle(s, "Arith.Neg", func(_ context.Context, in *int) (*int, error) { return in, nil })
		c := dialServer(t, s)
		ctx, in, out := context.Background(), new(1), new(int)
		return allocs(t, func() {
			if err := c.Call(ctx, "Arith.Neg", in, out); err != nil {
				t.Error(err)
			}
		})
	}
	pass := func(next anser.Func) anser.Func { return next }
	plain := count()
	unsampled := count(anser.Sampled(func(string) bool { return false }, pass))
	if raced {
		plain++ // pools drop some objects at random, so both are averages
	}
	if unsampled > plain {
		t.Errorf("%v allocations for a call that is not chosen, %v without the option", unsampled, plain)
	}
}

func TestOnMessage(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	watch := func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			inv.OnMessage(func(message any, sent bool) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprint(*message.(*int), sent))
			})
			return next(ctx, inv)
		}
	}
	s := anser.NewServer(anser.Intercept(watch))
	anser.HandleStream(s, "Arith.Double", func(_ context.Context, st *anser.Stream[int, int]) error {
		for n, err := range st.All() {
			if err != nil {
				return err
			}
			if err := st.Send(new(2 * *n)); err != nil {
				return err
			}
		}
		return nil
	})
	anser.Handle(s, "Arith.Neg", func(_ context.Context, in *int) (*int, error) { return new(-*in), nil })
	c := dialServer(t, s)
	st, err := anser.Open[int, int](t.Context(), c, "Arith.Double")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := st.Send(new(n + 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	st.CloseSend()
	if _, err := st.Recv(); err != io.EOF {
		t.Fatal(err)
	}
	if _, err := anser.Call[int](t.Context(), c, "Arith.Neg", new(1)); err != nil {
		t.Errorf("a call with OnMessage: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"1 false", "2 true", "2 false", "4 true"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}

// dialServer runs the server and returns a client of it.
func dialServer(t *testing.T, s *anser.Server) *anser.Client {
	l := listen(t)
	run(t, s, l)
	return dial(t, l.Addr().String())
}
