package gofile_test

import (
	"reflect"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/desk"
	"github.com/anser-rpc/anser/cmd/anser/internal/gofile"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/gocontract"
)

// A program says the same of its types as their source code says.
func TestTypesOfAProgram(t *testing.T) {
	files, err := gofile.Load(t.Context(), []string{"../gen/gentest/desk/desk.go"})
	if err != nil {
		t.Fatal(err)
	}
	source := files[0].Schema()
	ints := []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[int]()}
	for method, add := range map[string]func(*contract.Schema) (request, reply string){
		"Ask": func(s *contract.Schema) (string, string) {
			return gocontract.Message(s, reflect.TypeFor[desk.Question]()), gocontract.Message(s, reflect.TypeFor[desk.Answer]())
		},
		"DivMod": func(s *contract.Schema) (string, string) {
			gocontract.Tuple(s, "in", []string{"a", "b"}, ints)
			gocontract.Tuple(s, "out", []string{"q", "r"}, ints)
			return "in", "out"
		},
		"Set": func(s *contract.Schema) (string, string) {
			gocontract.Tuple(s, "in", []string{"name", "values", "err"}, []reflect.Type{
				reflect.TypeFor[string](), reflect.TypeFor[map[string][]float64](), reflect.TypeFor[*desk.Answer](),
			})
			gocontract.Tuple(s, "out", nil, nil)
			return "in", "out"
		},
	} {
		program := &contract.Schema{Kind: contract.Go}
		request, reply := add(program)
		program.Services = []contract.Service{{Name: "office.Desk", Methods: []contract.Method{{Name: method, Request: request, Reply: reply}}}}
		if got, want := program.Fingerprint("office.Desk", method), source.Fingerprint("office.Desk", method); got != want || want == "" {
			t.Errorf("%s: the fingerprints are %q and %q:\n%+v\n%+v", method, got, want, program, source)
		}
	}
}
