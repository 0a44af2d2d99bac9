package anser_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
)

type (
	inner     struct{ E error }
	withError struct{ Inner []inner }
	withChan  struct {
		M map[string]*struct{ C chan int }
	}
	withFunc struct{ F [2]func() }
	loop     struct {
		Next *loop
		Any  any
		Map  map[string][]loop
	}
	leftOut struct {
		E error    `msgpack:"-"`
		C chan int `msgpack:"-"`
	}
	leftOutOfJSON struct {
		F func() `json:"-"`
	}
	noField struct {
		_ chan int
		F func() `msgpack:"-" json:"-"`
	}
	ownText  struct{ _ chan int }
	holdsOwn struct{ Own ownText }
)

func (ownText) MarshalText() ([]byte, error)  { return []byte("own"), nil }
func (*ownText) UnmarshalText(b []byte) error { return nil }

func same[T any](_ context.Context, in *T) (*T, error) { return in, nil }

// add serves a method with the type, and returns the error.
func add[T any](opts ...anser.HandleOption) error {
	return anser.Handle(anser.NewServer(silent), "A.B", same[T], opts...)
}

// A type that cannot be encoded is refused when its method is added, with the path of the field.
func TestTypesThatCannotTravel(t *testing.T) {
	for want, err := range map[string]error{
		"field Inner[].E: error is an interface":            add[withError](),
		"field M[].C: there is no MessagePack for chan int": add[withChan](),
		"field F[]: there is no MessagePack for func()":     add[withFunc](),
		"there is no MessagePack for chan int":              add[chan int](),
		"no codec of the server can carry":                  add[noField](anser.OnlyCodecs(codec.Raw{})),
		"field F: there is no MessagePack for func()":       add[leftOutOfJSON](anser.OnlyCodecs(msgpack.New())),
		"field []: there is no MessagePack":                 add[[]chan int](),
		`method "A.B": no codec of the server can carry a request of type anser_test.Args with a reply of type anser_test.withFunc`: anser.Handle(anser.NewServer(), "A.B",
			func(context.Context, *Args) (*withFunc, error) { return nil, nil }),
		"field E: error is an interface, for which no type": anser.HandleOneway(anser.NewServer(), "A.B", func(context.Context, *inner) error { return nil }),
		"field C: there is no JSON for":                     anser.HandleStream(anser.NewServer(), "A.B", func(context.Context, *anser.Stream[Args, struct{ C chan int }]) error { return nil }),
		"argument 1, cannot travel as JSON and MessagePack: field E: error is": anser.NewServer().RegisterFunc("A.B",
			func(_ context.Context, a struct{ E error }, b int) (int, error) { return 0, nil }),
		"json: struct { E error }: field E: error is": anser.NewServer().RegisterFunc("A.B",
			func(context.Context, *struct{ E error }) (*Reply, error) { return nil, nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	for name, err := range map[string]error{
		"recursive": add[loop](), "any": add[any](), "tags": add[leftOut](), "one of two codecs": add[leftOutOfJSON](),
		"unexported": add[noField](), "own marshaler": add[holdsOwn](), "time": add[time.Time](), "bytes": add[[]byte](), "none": add[anser.None](),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var f func(ctx context.Context, in *withChan) (*Reply, error)
	if err := anser.Bind(dial(t, "127.0.0.1:1"), "A.B", &f); err == nil || !strings.Contains(err.Error(), "field M[].C") {
		t.Error(err)
	}
}

// A handler without a reply that returns nil has succeeded.
func TestNilIsANone(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(anser.Handle(s, "A.Typed", func(context.Context, *Args) (*anser.None, error) { return nil, nil }))
		must(s.RegisterFunc("A.Reflected", func(context.Context, *Args) (*anser.None, error) { return nil, nil }))
		must(anser.Handle(s, "A.Reply", func(context.Context, *Args) (*Reply, error) { return nil, nil }))
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		for _, method := range []string{"A.Typed", "A.Reflected"} {
			if r, err := anser.Call[anser.None](t.Context(), c, method, new(Args)); r == nil || err != nil {
				t.Errorf("%s: %v, %v", method, r, err)
			}
		}
		if _, err := anser.Call[Reply](t.Context(), c, "A.Reply", new(Args)); !errors.Is(err, anser.Internal) {
			t.Error(err)
		}
	})
}
