package gocode

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// CheckProto returns an error if two names in the files to generate become the same name in Go, or
// one becomes a name that the generated code cannot have: protobuf tells upper from lower case
// where Go does not.
func CheckProto(plugin *protogen.Plugin) error {
	c := &nameChecker{taken: make(map[protogen.GoIdent]protoreflect.Descriptor), services: make(map[protogen.GoIdent]protoreflect.Descriptor)}
	for _, f := range plugin.Files {
		if !f.Generate {
			continue
		}
		for _, e := range f.Enums {
			c.enum(e)
		}
		for _, m := range f.Messages {
			c.message(m)
		}
		for _, x := range f.Extensions {
			c.add(protogen.GoIdent{GoName: "E_" + x.GoName, GoImportPath: f.GoImportPath}, x.Desc)
		}
		for _, s := range f.Services {
			c.service(f, s)
		}
	}
	return errors.Join(c.mistakes...)
}

type nameChecker struct {
	taken    map[protogen.GoIdent]protoreflect.Descriptor // by types, values and variables
	services map[protogen.GoIdent]protoreflect.Descriptor
	mistakes []error
}

// at returns where the name is declared.
func at(d protoreflect.Descriptor) string {
	place := d.ParentFile().SourceLocations().ByDescriptor(d)
	if place.Path == nil {
		return d.ParentFile().Path()
	}
	return fmt.Sprintf("%s:%d:%d", d.ParentFile().Path(), place.StartLine+1, place.StartColumn+1)
}

func (c *nameChecker) add(name protogen.GoIdent, d protoreflect.Descriptor) {
	if before, twice := c.taken[name]; twice {
		c.mistakes = append(c.mistakes, fmt.Errorf("%s: %s and %s (%s) both get the Go name %s: rename one of them", at(d), d.FullName(), before.FullName(), at(before), name.GoName))
		return
	}
	c.taken[name] = d
}

func (c *nameChecker) enum(e *protogen.Enum) {
	c.add(e.GoIdent, e.Desc)
	for _, v := range e.Values {
		c.add(v.GoIdent, v.Desc)
	}
}

func (c *nameChecker) message(m *protogen.Message) {
	if m.Desc.IsMapEntry() {
		return
	}
	c.add(m.GoIdent, m.Desc)
	for _, f := range m.Fields {
		if f.GoName == "ProtoReflect" { // of the other methods of messages, protoc-gen-go renames fields
			c.mistakes = append(c.mistakes, fmt.Errorf("%s: field %s gets the Go name ProtoReflect, which is a method of all messages: rename it", at(f.Desc), f.Desc.FullName()))
		}
		if f.Oneof != nil && !f.Oneof.Desc.IsSynthetic() {
			c.add(f.GoIdent, f.Desc)
		}
	}
	for _, e := range m.Enums {
		c.enum(e)
	}
	for _, n := range m.Messages {
		c.message(n)
	}
	for _, x := range m.Extensions {
		c.add(protogen.GoIdent{GoName: "E_" + m.GoIdent.GoName + "_" + x.GoName, GoImportPath: m.GoIdent.GoImportPath}, x.Desc)
	}
}

// service checks a service against others, and its methods against each other.
func (c *nameChecker) service(f *protogen.File, s *protogen.Service) {
	name := protogen.GoIdent{GoName: s.GoName, GoImportPath: f.GoImportPath}
	if before := c.services[name]; before != nil {
		c.mistakes = append(c.mistakes, fmt.Errorf("%s: services %s and %s (%s) both get the Go name %s: rename one of them", at(s.Desc), s.Desc.FullName(), before.FullName(), at(before), s.GoName))
	}
	c.services[name] = s.Desc
	methods := make(map[string]*protogen.Method)
	for _, m := range s.Methods {
		if before := methods[m.GoName]; before != nil {
			c.mistakes = append(c.mistakes, fmt.Errorf("%s: methods %s and %s both get the Go name %s: rename one of them", at(m.Desc), m.Desc.FullName(), before.Desc.FullName(), m.GoName))
		}
		methods[m.GoName] = m
	}
}
