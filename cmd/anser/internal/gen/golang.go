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
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/anser-rpc/anser/cmd/anser/internal/gocode"
	"github.com/anser-rpc/anser/cmd/anser/internal/gofile"
	"github.com/anser-rpc/anser/contract"
)

// isGoContract reports whether the file is Go code with a contract.
func isGoContract(file string) bool {
	if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
		return false
	}
	content, err := os.ReadFile(file)
	return err == nil && bytes.Contains(content, []byte("\n//anser:service")) && !generated(content)
}

// generateGo makes the code of contracts that are Go interfaces, in their folders.
func generateGo(ctx context.Context, o Options, files []string) ([]File, error) {
	contracts, err := gofile.Load(ctx, files)
	if err != nil {
		return nil, err
	}
	var out []File
	var mistakes []error
	for _, c := range contracts {
		f, err := goFile(c)
		out = append(out, f)
		mistakes = append(mistakes, err)
	}
	return out, errors.Join(mistakes...)
}

func goSchema(ctx context.Context, _, files []string) (*contract.Schema, error) {
	contracts, err := gofile.Load(ctx, files)
	if err != nil {
		return nil, err
	}
	all := &contract.Schema{Kind: contract.Go}
	for _, c := range contracts {
		all.Add(c.Schema())
	}
	return all, nil
}

// emptyPlugin makes files without a protobuf file.
func emptyPlugin() (*protogen.Plugin, error) {
	return protogen.Options{}.New(new(pluginpb.CodeGeneratorRequest))
}

// content returns what the plugin makes of its only file.
func content(plugin *protogen.Plugin) ([]byte, error) {
	response := plugin.Response()
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return []byte(response.File[0].GetContent()), nil
}

func goFile(c *gofile.File) (File, error) {
	plugin, err := emptyPlugin()
	if err != nil {
		return File{}, err
	}
	base := filepath.Base(c.Path)
	out := File{Path: strings.TrimSuffix(c.Path, ".go") + ".anser.go", Source: base}
	g := plugin.NewGeneratedFile("code.go", protogen.GoImportPath(c.Package.Path()))
	gocode.Header(g, Version(), base, c.Package.Name(), "")
	variable := identifier(strings.TrimSuffix(base, ".go")) + "_contract"
	var names []string
	var services []gocode.Service
	for _, s := range c.Services {
		names = append(names, s.Name)
		service := goService(g, s, variable)
		if err := freeNames(c, s, &service); err != nil {
			return File{}, err
		}
		services = append(services, service)
	}
	schema := c.Schema()
	if err := schema.Check(); err != nil {
		return File{}, fmt.Errorf("%s: %w", c.Path, err)
	}
	text, err := gocode.ContractText(schema.Only(names...))
	if err != nil {
		return File{}, err
	}
	gocode.Services(g, services)
	gocode.Contract(g, variable, text, protogen.GoIdent{})
	out.Content, err = content(plugin)
	return out, err
}

// identifier turns the name of a file into a Go identifier in lower case.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '_'
	}, "file_"+name)
}

func goService(g *protogen.GeneratedFile, s *gofile.Service, variable string) gocode.Service {
	typeName := func(t types.Type) string {
		return types.TypeString(t, func(p *types.Package) string {
			alias, _, imported := strings.Cut(g.QualifiedGoIdent(protogen.GoImportPath(p.Path()).Ident("X")), ".")
			if !imported {
				return ""
			}
			return alias
		})
	}
	out := gocode.Service{Name: s.Name, Go: s.Go, Doc: s.Doc, Deprecated: s.Deprecated, Contract: variable, Server: s.Go, Declared: true}
	for _, m := range s.Methods {
		c := gocode.Method{
			Name: m.Name, Go: m.Name, Doc: m.Doc, Deprecated: m.Deprecated, Idempotent: m.Idempotent,
			Oneway: m.Kind == gofile.Oneway, Filled: m.Kind == gofile.Filled, Tuple: m.Kind == gofile.Tuple,
			ClientStream: m.Kind == gofile.ClientStream || m.Kind == gofile.BothStream,
			ServerStream: m.Kind == gofile.ServerStream || m.Kind == gofile.BothStream,
		}
		if m.In != nil {
			c.In = typeName(m.In)
		}
		if m.Out != nil {
			c.Out = typeName(m.Out)
		}
		taken := []string{"ctx", "opts", "x", "out", "err", "in", "h", "s"}
		c.Args = values(m.Args, "arg", typeName, &taken)
		c.Results = values(m.Results, "result", typeName, &taken)
		out.Methods = append(out.Methods, c)
	}
	return out
}

// values names arguments or results. taken are the parameters that exist already.
func values(list []*types.Var, other string, typeName func(types.Type) string, taken *[]string) []gocode.Value {
	fields := []string{"Tuple", "MarshalMsg", "UnmarshalMsg", "MarshalJSON", "UnmarshalJSON"}
	var out []gocode.Value
	for i, v := range list {
		numbered := fmt.Sprintf("%s%d", other, i+1)
		name := gofile.ValueName(v, other, i)
		param := name
		if slices.Contains(*taken, param) || packageLike(list, param) {
			param = numbered
		}
		field := exported(name)
		if slices.Contains(fields, field) || !token.IsExported(field) {
			field = exported(numbered)
		}
		*taken, fields = append(*taken, param), append(fields, field)
		out = append(out, gocode.Value{Name: name, Field: field, Param: param, Type: typeName(v.Type())})
	}
	return out
}

// packageLike reports whether a parameter of the name could hide a package that the generated code
// uses.
func packageLike(list []*types.Var, name string) bool {
	switch name {
	case "anser", "context", "errors", "contract", "tuple":
		return true
	}
	for _, v := range list {
		found := false
		types.TypeString(v.Type(), func(p *types.Package) string {
			found = found || p.Name() == name
			return p.Name()
		})
		if found {
			return true
		}
	}
	return false
}

// exported returns the name with its first letter in upper case.
func exported(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(r)) + name[n:]
}

// freeNames returns an error if the package has something else with a name of the service's code.
func freeNames(c *gofile.File, s *gofile.Service, made *gocode.Service) error {
	for _, name := range gocode.Names(made) {
		o := c.Package.Scope().Lookup(name)
		if o == nil {
			continue
		}
		file := c.Position(o)
		if content, err := os.ReadFile(file.Filename); err == nil && generated(content) {
			continue // that is what is generated again
		}
		return fmt.Errorf("%v: %s is the name of generated code of the interface %s: rename one of them", file, name, s.Go)
	}
	return nil
}
