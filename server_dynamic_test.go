package anser_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
)

// A dynamic method has the types that it is given. Anser's own clients cannot call a foreign one.
func TestDynamicMethods(t *testing.T) {
	s := foreignServer(t)
	echo := func(_ context.Context, in any) (any, error) {
		if in.(*word).Text == "" {
			return (*word)(nil), nil
		}
		return in, nil
	}
	of := reflect.TypeFor[word]()
	if err := s.HandleDynamic([]anser.DynamicMethod{
		{Name: "Words.Echo", Request: of, Reply: of, Handle: echo},
		{Name: "echo", Request: of, Reply: of, Handle: echo, Foreign: true},
		{Name: "Words.Hidden", Request: of, Reply: of, Handle: echo, Foreign: true},
	}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []anser.DynamicMethod{
		{},
		{Name: "Words.No"},
		{Name: "Words.No", Request: of, Reply: of, Handle: echo, Err: errors.New("a mistake")},
		{Name: "Words.No", Handle: echo},
		{Name: "no", Handle: echo, Request: of, Reply: of},
		{Name: "Words.No", Handle: echo, Request: reflect.TypeFor[chan int](), Reply: of},
	} {
		if err := anser.NewServer().HandleDynamic([]anser.DynamicMethod{{Name: "Words.Yes", Request: of, Reply: of, Handle: echo}, d}); err == nil {
			t.Errorf("%+v is served", d)
		}
	}
	f := openForeign(t, s, nil)
	for _, name := range []string{"Words.Echo", "echo", "Words.Hidden"} {
		if reply, _, err := f.call(anser.ProtocolRequest{Method: name}, word{"a"}); err != nil || reply.(*word).Text != "a" {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
	}
	if _, _, err := f.call(anser.ProtocolRequest{Method: "echo"}, word{}); err == nil || !strings.Contains(err.Error(), "neither a reply nor an error") {
		t.Errorf("a nil reply: %v", err)
	}
	l := listen(t)
	run(t, s, l)
	c := dial(t, l.Addr().String())
	if reply, err := anser.Call[word](t.Context(), c, "Words.Echo", &word{"a"}); err != nil || reply.Text != "a" {
		t.Errorf("%v, %v", reply, err)
	}
	if _, err := anser.Call[word](t.Context(), c, "Words.Hidden", &word{"a"}); !errors.Is(err, anser.Unimplemented) {
		t.Errorf("a foreign method: %v", err)
	}
}
