package gocode

import (
	"fmt"
	"path"
	"slices"

	"google.golang.org/protobuf/compiler/protogen"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/protocontract"
)

// Proto generates the code of the services in a protobuf file, into a file of its own.
type Proto struct {
	Version string // of the generator
	// Separate puts the code into a package of its own, in a folder below that of the messages. Its
	// name is that of the messages with "anser" at its end.
	Separate bool
}

// Generate adds the file to the plugin, if the protobuf file has services.
func (p Proto) Generate(plugin *protogen.Plugin, file *protogen.File) error {
	if len(file.Services) == 0 {
		return nil
	}
	name, in, pkg := file.GeneratedFilenamePrefix+".anser.go", file.GoImportPath, file.GoPackageName
	if p.Separate {
		pkg += "anser"
		in = protogen.GoImportPath(path.Join(string(file.GoImportPath), string(pkg)))
		name = path.Join(path.Dir(name), string(pkg), path.Base(name))
	}
	schema := protocontract.FromFiles(file.Desc)
	g := plugin.NewGeneratedFile(name, in)
	Header(g, p.Version, file.Desc.Path(), string(pkg), "")
	var names []string
	var services []Service
	variable := lower(file.GoDescriptorIdent.GoName) + "_contract"
	for _, s := range file.Services {
		names = append(names, string(s.Desc.FullName()))
		service := protoService(g, schema, s, variable)
		if err := checkNames(plugin, file, &service, p.Separate); err != nil {
			return err
		}
		services = append(services, service)
	}
	text, err := ContractText(schema.Only(names...))
	if err != nil {
		return err
	}
	Services(g, services)
	Contract(g, variable, text, file.GoDescriptorIdent)
	return nil
}

func protoService(g *protogen.GeneratedFile, schema *contract.Schema, s *protogen.Service, variable string) Service {
	in := schema.Service(string(s.Desc.FullName()))
	out := Service{Name: in.Name, Go: s.GoName, Doc: in.Doc, Deprecated: in.Deprecated, Contract: variable, Server: s.GoName + "Server"}
	for _, m := range s.Methods {
		c := in.Method(string(m.Desc.Name()))
		out.Methods = append(out.Methods, Method{
			Name: c.Name, Go: m.GoName, Doc: c.Doc, Deprecated: c.Deprecated,
			In: g.QualifiedGoIdent(m.Input.GoIdent), Out: g.QualifiedGoIdent(m.Output.GoIdent),
			ClientStream: c.ClientStream, ServerStream: c.ServerStream, Oneway: c.Oneway, Idempotent: c.Idempotent,
		})
	}
	return out
}

// checkNames returns an error if the package already has a type with one of the service's names.
func checkNames(plugin *protogen.Plugin, file *protogen.File, s *Service, separate bool) error {
	names := Names(s)
	for i := range s.Methods {
		m := &s.Methods[i]
		if m.Oneway && (m.ClientStream || m.ServerStream) {
			return fmt.Errorf("%s: method %s.%s is a stream and cannot be oneway: remove the option (anser.oneway)", file.Desc.Path(), s.Name, m.Name)
		}
	}
	for _, f := range plugin.Files {
		if f.GoImportPath != file.GoImportPath || separate {
			continue
		}
		for _, taken := range goNames(f) {
			if slices.Contains(names, taken) {
				return fmt.Errorf("%s: service %s needs the Go name %s, which %s has already: rename one of them, or put the services into a package of their own (--separate)", file.Desc.Path(), s.Name, taken, f.Desc.Path())
			}
		}
	}
	return nil
}

// goNames returns the names of the types of a file in Go.
func goNames(f *protogen.File) []string {
	var names []string
	for _, e := range f.Enums {
		names = append(names, e.GoIdent.GoName)
	}
	var add func(m *protogen.Message)
	add = func(m *protogen.Message) {
		names = append(names, m.GoIdent.GoName)
		for _, e := range m.Enums {
			names = append(names, e.GoIdent.GoName)
		}
		for _, inner := range m.Messages {
			add(inner)
		}
	}
	for _, m := range f.Messages {
		add(m)
	}
	return names
}
