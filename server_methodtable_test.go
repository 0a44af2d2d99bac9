package anser_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// Methods that are added while the server serves are available at once: on connections on which
// they were called before, with their aliases, limits and interceptors, and in the list of
// methods.
func TestMethodsAddedWhileServing(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var added []string
		s := anser.NewServer(silent, anser.Observe(anser.Observer{MethodAdded: func(name string) error {
			added = append(added, name)
			return nil
		}}))
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		ctx := t.Context()
		for _, name := range []string{"Echo.Say", "Echo.Tell", "Late.Chat"} {
			_, err := call(ctx, c, name, "")
			wantFault(t, err, anser.Unimplemented, anser.Refused)
		}
		if names := listed(t, c); len(names) != 0 {
			t.Errorf("%q are served", names)
		}
		if err := anser.Handle(s, "Echo.Say", echo, anser.Alias("Echo.Tell"), anser.DeprecatedAlias("Echo.Utter"), anser.MaxQueueTime(time.Second)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Echo.Say", "Echo.Tell", "Echo.Utter"} {
			if out, err := call(ctx, c, name, "hello"); out != "hello" || err != nil {
				t.Errorf("%s: %q, %v", name, out, err)
			}
		}
		if err := s.RegisterName("Sum", new(Sum)); err != nil {
			t.Fatal(err)
		}
		if out, err := anser.Call[Reply](ctx, c, "Sum.Add", &Args{1, 2}); err != nil || out.C != 3 {
			t.Error(out, err)
		}
		err := anser.HandleStream(s, "Late.Chat", func(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
			in, err := st.Recv()
			if err != nil {
				return err
			}
			return st.Send(in)
		})
		if err != nil {
			t.Fatal(err)
		}
		st, err := anser.Open[[]byte, []byte](ctx, c, "Late.Chat")
		if err != nil {
			t.Fatal(err)
		}
		st.Send(text("chat"))
		if out, err := st.Recv(); err != nil || string(*out) != "chat" {
			t.Error(err)
		}
		want := []string{"Echo.Say", "Late.Chat", "Sum.Add", "Sum.Sub"}
		if names := listed(t, c); !slices.Equal(names, want) {
			t.Errorf("%q are served, want %q", names, want)
		}
		slices.Sort(added)
		if !slices.Equal(added, want) {
			t.Errorf("the observer was told of %q, want %q", added, want)
		}
		if st := s.Stats(); st.Accepted != 1 || st.Methods["Echo.Say"].Calls != 3 || st.DeprecatedAliases["Echo.Utter"] != 1 {
			t.Errorf("%+v", st)
		}
		synctest.Wait()
	})
}

// Sum has two methods.
type Sum struct{}

func (*Sum) Add(_ context.Context, in *Args) (*Reply, error) { return &Reply{in.A + in.B}, nil }
func (*Sum) Sub(_ context.Context, in *Args) (*Reply, error) { return &Reply{in.A - in.B}, nil }

// listed returns the methods that the server lists.
func listed(t *testing.T, c *anser.Client) []string {
	t.Helper()
	list, err := anser.Call[anser.MethodList](t.Context(), c, anser.MethodsName, &anser.None{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range list.Methods {
		names = append(names, m.Name)
	}
	return names
}

// A mistake in a method that is added late is returned, adds nothing, and does not prevent the
// server from serving on another listener.
func TestMistakesWhileServing(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo, "Sum.Sub": echo})
		synctest.Wait()
		for want, err := range map[string]error{
			`method "Echo.Say" is there already: give the second one another name`:                   anser.Handle(s, "Echo.Say", echo),
			`method "Echo.Twice" is there already: give the second one another name`:                 anser.Handle(s, "Echo.New", echo, anser.Alias("Echo.Twice", "Echo.Twice")),
			`method "Sum.Sub" is there already: give the second one another name`:                    s.Register(new(Sum)),
			`method name "New" has not the form Service.Method: use a name such as "Arith.Mul"`:      anser.Handle(s, "New", echo),
			`method "Echo.New" has an option that is nil`:                                            anser.Handle(s, "Echo.New", echo, nil),
			`method name "Anser.New" begins with "Anser.", which belongs to the protocol: use anoth`: anser.Handle(s, "Anser.New", echo),
		} {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		run(t, s, network.Listen("b:1"))
		c := dial(t, "b:1", anser.Dialer(network.Dial))
		for _, name := range []string{"Echo.New", "Sum.Add"} {
			_, err := call(t.Context(), c, name, "")
			wantFault(t, err, anser.Unimplemented, anser.Refused)
		}
	})
}

// Methods are added by many goroutines while others call them.
func TestMethodsAddedBesideCalls(t *testing.T) {
	network := new(ansertest.Network)
	s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.AdaptiveLimit(1000, 1000))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(2), anser.Timeout(patience))
	const adders, methods = 4, 50
	var wg sync.WaitGroup
	for g := range adders {
		wg.Go(func() {
			for i := range methods {
				if err := anser.Handle(s, fmt.Sprintf("Echo.Say%d_%d", g, i), echo); err != nil {
					t.Error(err)
				}
				s.Stats()
			}
		})
		wg.Go(func() {
			for i := range methods {
				name := fmt.Sprintf("Echo.Say%d_%d", g, i)
				eventually(t, name, func() bool {
					_, err := call(context.Background(), c, name, "")
					return err == nil
				})
			}
		})
	}
	wg.Wait()
	if n := len(listed(t, c)); n != adders*methods+1 {
		t.Errorf("%d methods are listed, want %d", n, adders*methods+1)
	}
}
