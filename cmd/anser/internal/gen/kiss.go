package gen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"

	"github.com/anser-rpc/anser/cmd/anser/internal/gocode"
	"github.com/anser-rpc/anser/cmd/anser/internal/kiss"
	"github.com/anser-rpc/anser/contract"
)

// isKiss reports whether the file is a contract of kiss-rpc, by its name: .kiss, or .idl, which
// others use too, if it begins like one.
func isKiss(file string) bool {
	if strings.HasSuffix(file, ".kiss") {
		return true
	}
	if !strings.HasSuffix(file, ".idl") {
		return false
	}
	text, err := os.ReadFile(file)
	return err == nil && (bytes.Contains(text, []byte("@message:")) || bytes.Contains(text, []byte("@service:")))
}

// generateKiss makes Go structs for the messages of kiss-rpc's contracts, and the code of their
// services.
func generateKiss(_ context.Context, o Options, files []string) ([]File, error) {
	var out []File
	var mistakes []error
	for _, file := range files {
		f, err := kissFile(o, file)
		out = append(out, f)
		mistakes = append(mistakes, err)
	}
	return out, errors.Join(mistakes...)
}

func kissFile(o Options, file string) (File, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return File{}, err
	}
	parsed, err := kiss.Parse(file, text)
	if err != nil {
		return File{}, err
	}
	dir := filepath.Dir(file)
	if o.Out != "" {
		dir = o.Out
	}
	pkg, err := goPackageOf(dir)
	if err != nil {
		return File{}, err
	}
	base := filepath.Base(file)
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	plugin, err := emptyPlugin()
	if err != nil {
		return File{}, err
	}
	g := plugin.NewGeneratedFile("code.go", "contract")
	gocode.Header(g, Version(), base, pkg, "")
	k := &kissCode{GeneratedFile: g, names: make(map[string]contract.Position)}
	for _, m := range parsed.Messages {
		k.message(m)
	}
	variable := identifier(stem) + "_contract"
	var services []gocode.Service
	var names []string
	for _, s := range parsed.Services {
		services = append(services, k.service(s, variable))
		names = append(names, s.Name)
	}
	if err := errors.Join(k.mistakes...); err != nil {
		return File{}, err
	}
	gocode.Services(g, services)
	if len(services) > 0 {
		schema, err := gocode.ContractText(parsed.Schema().Only(names...))
		if err != nil {
			return File{}, err
		}
		gocode.Contract(g, variable, schema, protogen.GoIdent{})
	}
	code, err := content(plugin)
	return File{Path: filepath.Join(dir, stem+".anser.go"), Content: code, Source: base}, err
}

func kissSchema(_ context.Context, _, files []string) (*contract.Schema, error) {
	all := &contract.Schema{Kind: contract.Kiss}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		parsed, err := kiss.Parse(file, text)
		if err != nil {
			return nil, err
		}
		all.Add(parsed.Schema())
	}
	return all, nil
}

// goPackageOf returns the name of the package in a folder, or the one that it should have.
func goPackageOf(dir string) (string, error) {
	if name := packageName(dir); name != "" {
		return name, nil
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == ' ' {
			return '_'
		}
		return r
	}, strings.ToLower(filepath.Base(whole)))
	if !token.IsIdentifier(name) {
		return "", fmt.Errorf("the folder %s has no name for a Go package: give it one with a file that begins with \"package NAME\"", dir)
	}
	return name, nil
}

// kissCode writes the code of a file.
type kissCode struct {
	*protogen.GeneratedFile
	names    map[string]contract.Position // of declarations in Go
	mistakes []error
}

func (k *kissCode) wrong(at contract.Position, format string, args ...any) {
	k.mistakes = append(k.mistakes, fmt.Errorf("%v: %s", at, fmt.Sprintf(format, args...)))
}

// declare finds names that Go code cannot have twice.
func (k *kissCode) declare(name string, at contract.Position) {
	if before, taken := k.names[name]; taken {
		k.wrong(at, "the Go name %s is that of the definition at %v, too: rename one of them", name, before)
	}
	k.names[name] = at
}

func (k *kissCode) doc(text, otherwise string) {
	if text == "" {
		text = otherwise
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" || text != "" {
			k.P(strings.TrimRight("// "+line, " "))
		}
	}
}

func (k *kissCode) message(m *kiss.Message) {
	name := exported(m.Name)
	k.declare(name, m.At)
	k.doc(m.Doc, name+" is a message of the contract.")
	k.P("type ", name, " struct {")
	fields := make(map[string]bool)
	var list []string
	for _, f := range m.Fields {
		field := exported(f.Name)
		if !token.IsExported(field) {
			field = "X" + field // a name that begins with an underscore, or without capital letters
		}
		if fields[field] {
			k.wrong(f.At, "the fields of message %s have the Go name %s twice: rename one of them", m.Name, field)
		}
		fields[field] = true
		list = append(list, field)
		if f.Doc != "" {
			k.doc(f.Doc, "")
		}
		k.P(field, " ", goType(f.Type), fmt.Sprintf(" `json:%q msgpack:%q`", f.Name, f.Name))
	}
	k.P("}")
	k.P()
	k.msgpack(m, list)
}

// goType returns the type of a field. A message in another one is a pointer, so that it can be
// absent and contain itself; arrays contain values.
func goType(t kiss.Type) string {
	name := kiss.Scalars[t.Name]
	if t.Message {
		name = exported(t.Name)
	}
	switch {
	case t.Array:
		return "[]" + name
	case t.Message:
		return "*" + name
	}
	return name
}

func (k *kissCode) service(s *kiss.Service, variable string) gocode.Service {
	name := exported(s.Name)
	out := gocode.Service{Name: s.Name, Go: name, Doc: s.Doc, Contract: variable, Server: name + "Server"}
	methods := make(map[string]bool)
	for _, m := range s.Methods {
		c := gocode.Method{Name: m.Name, Go: exported(m.Name), Doc: m.Doc, Tuple: m.Tuple()}
		if !token.IsExported(c.Go) {
			c.Go = "X" + c.Go
		}
		if methods[c.Go] {
			k.wrong(m.At, "the functions of service %s have the Go name %s twice: rename one of them", s.Name, c.Go)
		}
		methods[c.Go] = true
		if c.Tuple {
			taken := []string{"ctx", "opts", "x", "out", "err", "in", "h", "s"}
			fields := []string{"Tuple", "MarshalMsg", "UnmarshalMsg", "MarshalJSON", "UnmarshalJSON"}
			for i, a := range m.Args {
				param, field := a.Name, exported(a.Name)
				if slices.Contains(taken, param) || packageLike(nil, param) || token.IsKeyword(param) || types.Universe.Lookup(param) != nil {
					param = fmt.Sprintf("arg%d", i+1)
				}
				if slices.Contains(fields, field) || !token.IsExported(field) {
					field = fmt.Sprintf("Arg%d", i+1)
				}
				taken, fields = append(taken, param), append(fields, field)
				c.Args = append(c.Args, gocode.Value{Name: a.Name, Field: field, Param: param, Type: goType(a.Type)})
			}
			c.Results = []gocode.Value{{Name: "result1", Field: "Result1", Param: "result1", Type: goType(m.Reply)}}
		} else {
			c.In, c.Out = exported(m.Args[0].Type.Name), exported(m.Reply.Name)
		}
		out.Methods = append(out.Methods, c)
	}
	for _, n := range gocode.Names(&out) {
		k.declare(n, s.At)
	}
	return out
}
