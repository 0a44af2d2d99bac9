package tuple_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/tuple"
	"github.com/anser-rpc/anser/internal/benchpb"
)

var layout = &tuple.Layout{What: "argument", Names: []string{"n", "list", "who"}, Types: []string{"int", "[]string", "*benchpb.AddRequest"}}

// record has an element of each kind: scalar, other, message.
type record struct {
	n    int
	list []string
	who  *benchpb.AddRequest
}

func (r *record) elements() []any { return []any{&r.n, &r.list, &r.who} }

func (r *record) same(o *record) bool {
	return r.n == o.n && reflect.DeepEqual(r.list, o.list) && r.who.GetA() == o.who.GetA() && (r.who == nil) == (o.who == nil)
}

func TestBothFormsInBothCodecs(t *testing.T) {
	for _, in := range []*record{
		{7, []string{"a", "b"}, &benchpb.AddRequest{A: 3}},
		{-1, []string{}, nil},
	} {
		for _, object := range []bool{false, true} {
			text, err := layout.AppendJSON([]byte("x"), object, in.elements()...)
			if err != nil || text[0] != 'x' {
				t.Fatal(string(text), err)
			}
			out := &record{5, []string{"old"}, &benchpb.AddRequest{A: 9}}
			if got, err := layout.DecodeJSON(text[1:], out.elements()...); err != nil || got != object || !out.same(in) {
				t.Errorf("JSON %s becomes %+v, %v, %v", text, out, got, err)
			}
			data, err := layout.AppendMsg(nil, object, in.elements()...)
			if err != nil {
				t.Fatal(err)
			}
			out = &record{5, []string{"old"}, &benchpb.AddRequest{A: 9}}
			got, rest, err := layout.DecodeMsg(append(data, 1, 2), out.elements()...)
			if err != nil || got != object || len(rest) != 2 || !out.same(in) {
				t.Errorf("MessagePack %x becomes %+v, %v, %x, %v", data, out, got, rest, err)
			}
		}
	}
}

// An element that an object lacks is zero, whatever was there.
func TestMissingElements(t *testing.T) {
	out := &record{5, []string{"old"}, &benchpb.AddRequest{A: 9}}
	if _, err := layout.DecodeJSON([]byte(`{"list": ["x"]}`), out.elements()...); err != nil || !out.same(&record{0, []string{"x"}, nil}) {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`[1, []]`, "2 arguments: want (n int, list []string, who *benchpb.AddRequest)"},
		{`{"m": 1}`, `there is no argument "m"`},
		{`["x", [], null]`, "argument n: "},
		{`3`, "want an array or an object"},
	} {
		if _, err := layout.DecodeJSON([]byte(test.text), new(record).elements()...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.text, err, test.want)
		}
	}
	if _, _, err := layout.DecodeMsg(nil, new(record).elements()...); err == nil {
		t.Error("an empty message was decoded")
	}
}

func TestUnfit(t *testing.T) {
	if err := errors.Join(tuple.Unfit(reflect.TypeFor[int]()), tuple.Unfit(reflect.TypeFor[*benchpb.AddRequest]())); err != nil {
		t.Error(err)
	}
	if err := tuple.Unfit(reflect.TypeFor[chan int]()); err == nil {
		t.Error("a channel can be an element")
	}
}

func Example() {
	l := tuple.Layout{What: "result", Names: []string{"q", "r"}, Types: []string{"int", "int"}}
	q, r := 5, 3
	text, err := l.AppendJSON(nil, true, &q, &r)
	fmt.Println(string(text), err)
	// Output: {"q":5,"r":3} <nil>
}
