// Package protoprint writes descriptors as .proto files.
package protoprint

import (
	"bytes"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// File returns the text of a file. files has it and all that it imports. The comments are those
// before messages, fields and all other names.
func File(f protoreflect.FileDescriptor, files *protoregistry.Files) ([]byte, error) {
	p := &printer{file: f, files: files, types: dynamicpb.NewTypes(files), packages: map[protoreflect.FullName]bool{}}
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for name := f.Package(); name != ""; name = name.Parent() {
			p.packages[name] = true
		}
		return true
	})
	p.print()
	return p.out.Bytes(), p.err
}

type printer struct {
	file     protoreflect.FileDescriptor
	files    *protoregistry.Files
	types    *dynamicpb.Types // with the extensions of options
	packages map[protoreflect.FullName]bool
	out      bytes.Buffer
	indent   string
	err      error
}

func (p *printer) line(format string, args ...any) {
	if format != "" {
		p.out.WriteString(p.indent)
	}
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

// block writes what body writes in braces, or only the line if that is nothing.
func (p *printer) block(head, empty string, body func()) {
	start := p.out.Len()
	p.line("%s {", head)
	inside := p.out.Len()
	p.indent += "  "
	body()
	p.indent = p.indent[2:]
	if p.out.Len() == inside {
		p.out.Truncate(start)
		p.line("%s%s", head, empty)
		return
	}
	p.line("}")
}

func (p *printer) comment(d protoreflect.Descriptor) {
	text := strings.TrimRight(p.file.SourceLocations().ByDescriptor(d).LeadingComments, "\n ")
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.line("%s", strings.TrimRight("//"+line, " \t"))
	}
}

func (p *printer) print() {
	switch p.file.Syntax() {
	case protoreflect.Editions:
		edition := protodesc.ToFileDescriptorProto(p.file).GetEdition()
		p.line("edition = %q;", strings.TrimPrefix(edition.String(), "EDITION_"))
	default:
		p.line("syntax = %q;", p.file.Syntax().String())
	}
	if p.file.Package() != "" {
		p.line("")
		p.line("package %s;", p.file.Package())
	}
	p.imports()
	p.optionLines(p.file.Options(), true)
	for i := range p.file.Services().Len() {
		p.line("")
		p.service(p.file.Services().Get(i))
	}
	p.declarations(p.file, true)
}

func (p *printer) imports() {
	imports := p.file.Imports()
	options := protodesc.ToFileDescriptorProto(p.file).GetOptionDependency()
	if imports.Len()+len(options) > 0 {
		p.line("")
	}
	for i := range imports.Len() {
		kind := ""
		if imports.Get(i).IsPublic {
			kind = "public "
		}
		p.line("import %s%q;", kind, imports.Get(i).Path())
	}
	for _, path := range options {
		p.line("import option %q;", path)
	}
}

// container is a file or a message.
type container interface {
	Messages() protoreflect.MessageDescriptors
	Enums() protoreflect.EnumDescriptors
	Extensions() protoreflect.ExtensionDescriptors
}

// declarations writes the messages, enums and extensions inside a file or message.
func (p *printer) declarations(in container, apart bool) {
	gap := func() {
		if apart {
			p.line("")
		}
		apart = true
	}
	for i := range in.Messages().Len() {
		if m := in.Messages().Get(i); !m.IsMapEntry() && !p.isGroup(in, m) {
			gap()
			p.comment(m)
			p.message("message "+string(m.Name()), m)
		}
	}
	for i := range in.Enums().Len() {
		gap()
		p.enum(in.Enums().Get(i))
	}
	for i := range in.Extensions().Len() {
		x := in.Extensions().Get(i)
		gap()
		p.block("extend "+p.ref(x.ContainingMessage(), x.Parent()), " {}", func() { p.field(x) })
	}
}

// isGroup reports whether a message is written with the field of proto2 that it is the group of.
func (p *printer) isGroup(in container, m protoreflect.MessageDescriptor) bool {
	is := func(f protoreflect.FieldDescriptor) bool { return p.group(f) && f.Message().FullName() == m.FullName() }
	if owner, ok := in.(protoreflect.MessageDescriptor); ok {
		for i := range owner.Fields().Len() {
			if is(owner.Fields().Get(i)) {
				return true
			}
		}
	}
	for i := range in.Extensions().Len() {
		if is(in.Extensions().Get(i)) {
			return true
		}
	}
	return false
}

// group reports whether a field is written as a group of proto2.
func (p *printer) group(f protoreflect.FieldDescriptor) bool {
	return f.Kind() == protoreflect.GroupKind && f.ParentFile().Syntax() == protoreflect.Proto2
}

func (p *printer) service(s protoreflect.ServiceDescriptor) {
	p.comment(s)
	p.block("service "+string(s.Name()), " {}", func() {
		p.optionLines(s.Options(), false)
		for i := range s.Methods().Len() {
			if i > 0 {
				p.line("")
			}
			m := s.Methods().Get(i)
			p.comment(m)
			in, out := p.ref(m.Input(), s), p.ref(m.Output(), s)
			if m.IsStreamingClient() {
				in = "stream " + in
			}
			if m.IsStreamingServer() {
				out = "stream " + out
			}
			p.block(fmt.Sprintf("rpc %s(%s) returns (%s)", m.Name(), in, out), ";", func() { p.optionLines(m.Options(), false) })
		}
	})
}

// ref returns the name of a message or enum as it is found from inside a scope.
func (p *printer) ref(d, scope protoreflect.Descriptor) string {
	name := d.FullName()
	if pkg := p.file.Package(); pkg != "" && strings.HasPrefix(string(name), string(pkg)+".") {
		name = name[len(pkg)+1:]
	}
	first, _, _ := strings.Cut(string(name), ".")
	for at := scope.FullName(); ; at = at.Parent() {
		full := protoreflect.FullName(first)
		if at != "" {
			full = at.Append(protoreflect.Name(first))
		}
		_, err := p.files.FindDescriptorByName(full)
		if err == nil || p.packages[full] { // the search ends here
			if prefix := strings.TrimSuffix(string(d.FullName()), string(name)); strings.TrimSuffix(prefix, ".") == string(at) {
				return string(name)
			}
			return "." + string(d.FullName())
		}
		if at == "" {
			return "." + string(d.FullName())
		}
	}
}

// Complete returns a set with the files of another one and all that they import, each after its
// imports. Missing ones are taken from this program.
func Complete(set *descriptorpb.FileDescriptorSet) (*descriptorpb.FileDescriptorSet, error) {
	have := make(map[string]*descriptorpb.FileDescriptorProto)
	for _, f := range set.File {
		have[f.GetName()] = f
	}
	out := new(descriptorpb.FileDescriptorSet)
	done := make(map[string]bool)
	var add func(path string) error
	add = func(path string) error {
		if done[path] {
			return nil
		}
		done[path] = true
		f := have[path]
		if f == nil {
			known, err := protoregistry.GlobalFiles.FindFileByPath(path)
			if err != nil {
				return fmt.Errorf("the imported file %s is missing", path)
			}
			f = protodesc.ToFileDescriptorProto(known)
		}
		for _, path := range f.Dependency {
			if err := add(path); err != nil {
				return err
			}
		}
		out.File = append(out.File, f)
		return nil
	}
	for _, f := range set.File {
		if err := add(f.GetName()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Files returns the texts of the files of a set by their paths, without those of google/protobuf,
// which every compiler has. Imports that the set does not have are those of this program.
func Files(set *descriptorpb.FileDescriptorSet) (map[string][]byte, error) {
	all, err := Complete(set)
	if err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(all)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte)
	for _, f := range set.File {
		if strings.HasPrefix(f.GetName(), "google/protobuf/") {
			continue
		}
		fd, err := files.FindFileByPath(f.GetName())
		if err != nil {
			return nil, err
		}
		if out[f.GetName()], err = File(fd, files); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// resolved returns options with the extensions that the files define.
func (p *printer) resolved(options proto.Message) protoreflect.Message {
	m := options.ProtoReflect()
	if !m.IsValid() {
		return m
	}
	data, err := proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(options)
	if err != nil {
		p.err = err
		return m
	}
	out := m.New()
	if err := (proto.UnmarshalOptions{AllowPartial: true, Resolver: p.types}).Unmarshal(data, out.Interface()); err != nil {
		p.err = err
		return m
	}
	return out
}
