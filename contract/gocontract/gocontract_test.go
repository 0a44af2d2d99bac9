package gocontract_test

import (
	"reflect"
	"testing"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/gocontract"
)

type (
	tree    []tree
	named   map[string]named
	loop    *loop
	holder  struct{ Child *holder }
	several struct {
		T tree
		N named
		L loop
		H holder
	}
)

// Types that contain themselves end.
func TestTypesThatContainThemselves(t *testing.T) {
	s := new(contract.Schema)
	gocontract.Tuple(s, "args", []string{"all"}, []reflect.Type{reflect.TypeFor[several]()})
	m := s.Message("gocontract_test.several")
	if m == nil || len(m.Fields) != 4 {
		t.Fatalf("the schema is %+v", s)
	}
	for i, want := range []contract.Type{
		{Name: "gocontract_test.tree", Repeated: true},
		{Name: "gocontract_test.named", Key: "string"},
		{Name: "gocontract_test.loop"},
		{Name: "message", Of: "gocontract_test.holder"},
	} {
		if m.Fields[i].Type != want {
			t.Errorf("%s has the type %+v, want %+v", m.Fields[i].Name, m.Fields[i].Type, want)
		}
	}
}
