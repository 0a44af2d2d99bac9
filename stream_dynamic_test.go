package anser_test

import (
	"context"
	"io"
	"reflect"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
)

func TestDynamicStream(t *testing.T) {
	s := anser.NewServer(silent)
	err := s.HandleDynamic([]anser.DynamicMethod{{
		Name: "Numbers.Double", Request: reflect.TypeFor[Args](), Reply: reflect.TypeFor[Reply](), ServerStream: true,
		Stream: func(_ context.Context, st *anser.DynamicStream) error {
			for {
				in := new(Args)
				if err := st.Recv(in); err != nil {
					return ended(err)
				}
				if err := st.Send(&Reply{2 * in.A}); err != nil {
					return err
				}
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	run(t, s, l)
	c := dial(t, l.Addr().String())
	for _, first := range []any{nil, &Args{A: 1}} {
		st, err := c.OpenDynamic(t.Context(), "Numbers.Double", (*Args)(nil), (*Reply)(nil), first)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			if err := st.Send(&Args{A: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.CloseSend(); err != nil {
			t.Fatal(err)
		}
		var out Reply
		if err := st.Recv(&out); err != nil || out.C != 2 {
			t.Errorf("received %v, %v", out, err)
		}
		if err := st.Recv(&out); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
	}
	var list anser.MethodList
	if err := c.Call(t.Context(), anser.MethodsName, new(anser.None), &list, anser.Codec(new(codec.JSON))); err != nil {
		t.Fatal(err)
	}
	if m := list.Methods[0]; !m.Stream || !m.ServerStream || m.ClientStream {
		t.Errorf("the method is described as %+v", m)
	}
}

func TestDynamicMethodsThatAreRefused(t *testing.T) {
	handle := func(context.Context, any) (any, error) { return nil, nil }
	stream := func(context.Context, *anser.DynamicStream) error { return nil }
	types := reflect.TypeFor[Args]()
	for name, m := range map[string]anser.DynamicMethod{
		"neither": {Name: "A.B", Request: types, Reply: types},
		"both":    {Name: "A.B", Request: types, Reply: types, Handle: handle, Stream: stream},
		"type":    {Name: "A.B", Request: types, Stream: stream},
	} {
		if err := anser.NewServer().HandleDynamic([]anser.DynamicMethod{m}); err == nil {
			t.Errorf("%s: there is no error", name)
		}
	}
}
