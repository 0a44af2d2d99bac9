package gofile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/gofile"
	"github.com/anser-rpc/anser/contract"
)

// load reads a contract from a file with the text, in a package of this module, so that it can
// import package anser.
func load(t *testing.T, text string) ([]*gofile.File, error) {
	t.Helper()
	dir, err := os.MkdirTemp("testdata", "contract")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "a.go")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return gofile.Load(t.Context(), []string{file})
}

const head = `package a

import "context"

type M struct{ N int }
type private struct{}
`

func TestMistakes(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no interface", "//anser:service\ntype S struct{}", "a.go:8:6: S is not an interface"},
		{"not exported", "//anser:service\ntype s interface{ A(context.Context, *M) (*M, error) }", "interface s is not exported"},
		{"type parameters", "//anser:service\ntype S[T any] interface{ A(context.Context, *T) (*T, error) }", "interface S has type parameters"},
		{"constraint", "//anser:service\ntype S interface{ ~int }", "is a constraint"},
		{"no methods", "//anser:service\ntype S interface{}", "has no methods"},
		{"private method", "//anser:service\ntype S interface{ a(context.Context, *M) (*M, error) }", "method S.a is not exported"},
		{"no context", "//anser:service\ntype S interface{ A(in *M) (*M, error) }", "method S.A does not begin with a context: want func(ctx context.Context, in *Args) (*Reply, error)"},
		{"no error", "//anser:service\ntype S interface{ A(ctx context.Context, in *M) *M }", "method S.A does not end with an error"},
		{"variadic", "//anser:service\ntype S interface{ A(ctx context.Context, in ...int) error }", "takes any number of arguments: take a slice"},
		{"value", "//anser:service\ntype S interface{ A(ctx context.Context, in M) (*M, error) }", "must both be pointers"},
		{"nothing", "//anser:service\ntype S interface{ A(ctx context.Context) error }", "has no argument and no result"},
		{"channel", "//anser:service\ntype S interface{ A(ctx context.Context, in chan int) error }", "cannot be part of a message: a channel is not data"},
		{"private type", "//anser:service\ntype S interface{ A(ctx context.Context, in *private) (*M, error) }", "the type private is not exported"},
		{"undefined", "//anser:service\ntype S interface{ A(ctx context.Context, in *Missing) (*M, error) }", "uses a type that is not defined"},
		{"oneway with reply", "//anser:service\ntype S interface{\n//anser:oneway\nA(ctx context.Context, in *M) (*M, error) }", "method S.A is oneway: want func(ctx context.Context, in *Args) error"},
		{"idempotent oneway", "//anser:service\ntype S interface{\n//anser:oneway\n//anser:idempotent\nA(ctx context.Context, in *M) error }", "is never called again by itself"},
		{"unknown comment", "//anser:service\ntype S interface{\n//anser:twoway\nA(ctx context.Context, in *M) (*M, error) }", "//anser:twoway is unknown"},
		{"syntax", "//anser:service\ntype S interface{ A( }", "a.go:"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(t, head+test.text+"\n")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// The code that is generated may be missing, and the package need not compile otherwise.
func TestPackageThatDoesNotCompile(t *testing.T) {
	files, err := load(t, head+`
//anser:service
type S interface { A(ctx context.Context, in *M) (*M, error) }

var c = NewSClient(nil)

func f() { return 1 }
`)
	if err != nil || len(files) != 1 || files[0].Services[0].Name != "S" {
		t.Errorf("%+v, %v", files, err)
	}
}

// The same holds for a package that the contract imports.
func TestImportThatDoesNotCompile(t *testing.T) {
	dir, err := os.MkdirTemp("testdata", "imported")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text := "package imported\n\ntype M struct{ N int }\n\nvar c = NewSClient(nil)\n"
	if err := os.WriteFile(filepath.Join(dir, "m.go"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := load(t, `package a

import (
	"context"

	"github.com/anser-rpc/anser/cmd/anser/internal/gofile/testdata/`+filepath.Base(dir)+`"
)

//anser:service
type S interface { A(ctx context.Context, in *imported.M) (*imported.M, error) }
`)
	if err != nil || len(files) != 1 || files[0].Services[0].Methods[0].Name != "A" {
		t.Errorf("%+v, %v", files, err)
	}
}

func TestSchema(t *testing.T) {
	files, err := load(t, `package a

import (
	"context"
	"time"

	"github.com/anser-rpc/anser"
)

type Base struct{ ID int64 }

type M struct {
	Base
	Text   string            `+"`json:\"text\" msgpack:\"t\"`"+`
	Bytes  []byte
	Nested [][]int
	Keys   map[string]*M
	At     time.Time
	Three  [3]bool
	Any    any
	Skip   int `+"`json:\"-\" msgpack:\"-\"`"+`
	hidden int
}

// Embedded has methods for others.
type Embedded interface {
	// Last is inherited.
	Last(ctx context.Context, in *M, out anser.Sender[M]) error
}

// S is a service.
//
// Deprecated: use another one.
//
//anser:service shop.S
type S interface {
	First(ctx context.Context, in *M) (*M, error)
	Embedded
}
`)
	if err != nil {
		t.Fatal(err)
	}
	schema := files[0].Schema()
	if err := schema.Check(); err != nil {
		t.Fatal(err)
	}
	s := schema.Service("shop.S")
	if s == nil || !s.Deprecated || len(s.Methods) != 2 || !s.Method("Last").ServerStream {
		t.Fatalf("the service is %+v", s)
	}
	got := make(map[string]string)
	for _, f := range schema.Message("a.M").Fields {
		got[f.Name] = f.Type.String() + " " + f.JSON
	}
	for name, want := range map[string]string{
		"ID": "int64 ", "t": "string text", "Bytes": "bytes ", "Nested": "repeated []int ", "Keys": "map<string, a.M> ",
		"At": "time ", "Three": "[3]bool ", "Any": "any ",
	} {
		if got[name] != want {
			t.Errorf("field %s is %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 8 || schema.Message("a.M").Form != contract.ByName {
		t.Errorf("the fields are %v", got)
	}
}
