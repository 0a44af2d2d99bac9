package anser_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/contract"
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

// Foreign methods are replaced in one step, also for connections that have called them before.
func TestReplaceDynamic(t *testing.T) {
	s := foreignServer(t)
	of := reflect.TypeFor[word]()
	says := func(name, text string) anser.DynamicMethod {
		return anser.DynamicMethod{Name: name, Request: of, Reply: of, Foreign: true, Handle: func(context.Context, any) (any, error) {
			return &word{text}, nil
		}}
	}
	if err := s.ReplaceDynamic(nil, []anser.DynamicMethod{says("a/W.X", "1"), says("b/W.X", "2")}, anser.Alias("c/W.X")); err == nil {
		t.Fatal("two methods with the same alias are served")
	}
	if err := s.ReplaceDynamic(nil, []anser.DynamicMethod{says("a/W.X", "1"), says("b/W.X", "2")}); err != nil {
		t.Fatal(err)
	}
	f := openForeign(t, s, nil)
	call := func(name, want string) {
		t.Helper()
		reply, _, err := f.call(anser.ProtocolRequest{Method: name}, word{})
		if want == "" {
			if !errors.Is(err, anser.Unimplemented) {
				t.Errorf("%s: %v, %v", name, reply, err)
			}
		} else if err != nil || reply.(*word).Text != want {
			t.Errorf("%s: %v, %v, want %q", name, reply, err, want)
		}
	}
	call("a/W.X", "1")
	call("b/W.X", "2")
	before := s.MethodsVersion()
	if err := s.ReplaceDynamic([]string{"a/W.X", "b/W.X"}, []anser.DynamicMethod{says("a/W.X", "3"), says("d/W.X", "4")}); err != nil {
		t.Fatal(err)
	}
	if s.MethodsVersion() == before {
		t.Error("the version of the methods has not grown")
	}
	call("a/W.X", "3")
	call("b/W.X", "")
	call("d/W.X", "4")
	if n := s.Stats().Methods["a/W.X"].Calls; n != 2 {
		t.Errorf("%d calls are counted", n)
	}
	if err := anser.Handle(s, "W.Own", func(_ context.Context, in *word) (*word, error) { return in, nil }); err != nil {
		t.Fatal(err)
	}
	visible := says("W.Visible", "5")
	visible.Foreign = false
	for what, err := range map[string]error{
		"a method that is not there":     s.ReplaceDynamic([]string{"a/W.X", "b/W.X"}, nil),
		"a method that is not foreign":   s.ReplaceDynamic([]string{"W.Own"}, nil),
		"a name that is taken":           s.ReplaceDynamic([]string{"a/W.X"}, []anser.DynamicMethod{says("d/W.X", "6")}),
		"a method that is for everybody": s.ReplaceDynamic(nil, []anser.DynamicMethod{visible}),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	call("a/W.X", "3")
}

// A dynamic method has the contract and the properties that it is given. Its handler sees the
// idempotency key of a call that it takes itself.
func TestDynamicProperties(t *testing.T) {
	s := foreignServer(t)
	of := reflect.TypeFor[word]()
	var key string
	source := contract.NewSource(`{"kind": "go", "services": [{"name": "Words", "methods": [{"name": "Say", "doc": "Says.", "request": "W", "reply": "W", "idempotent": true}, {"name": "Tell", "request": "W", "oneway": true}]}], "messages": [{"name": "W"}]}`)
	if err := s.HandleDynamic([]anser.DynamicMethod{
		{Name: "words/Words.Say", Request: of, Reply: of, Foreign: true, Contract: source, ContractName: "Words.Say", Idempotent: true, TakesKeys: true, Handle: func(ctx context.Context, in any) (any, error) {
			key = anser.IdempotencyKeyFrom(ctx)
			return in, nil
		}},
		{Name: "words/Words.Tell", Request: of, Reply: of, Foreign: true, Contract: source, ContractName: "Words.Tell", Oneway: true, Handle: func(context.Context, any) (any, error) {
			return nil, nil
		}},
	}); err != nil {
		t.Fatal(err)
	}
	m, _ := s.Method("words/Words.Say")
	if !m.Idempotent || !m.Deduplicates || m.Doc != "Says." || m.ContractName != "Words.Say" || m.Schema().Service("Words") == nil {
		t.Errorf("%+v", m)
	}
	f := openForeign(t, s, nil)
	for range 2 {
		if _, _, err := f.call(anser.ProtocolRequest{Method: "words/Words.Say", IdempotencyKey: "k", Codec: new(codec.JSON)}, word{"a"}); err != nil || key != "k" {
			t.Errorf("key %q, %v", key, err)
		}
	}
	if n := s.Stats().Methods["words/Words.Say"].Calls; n != 2 {
		t.Errorf("%d runs of calls with a key that the handler takes", n)
	}
	if _, _, err := f.call(anser.ProtocolRequest{Method: "words/Words.Tell", Oneway: true}, word{"a"}); err != nil {
		t.Error(err)
	}
	if err := s.HandleDynamic([]anser.DynamicMethod{{
		Name: "w/Words.Tell", Request: of, Reply: of, Foreign: true, Contract: source, ContractName: "Words.Tell",
		Handle: func(context.Context, any) (any, error) { return nil, nil },
	}}); err == nil {
		t.Error("a call is served whose contract says oneway")
	}
}
