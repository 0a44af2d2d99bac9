package protocontract

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser/contract"
)

// ToFiles describes contracts in Go types and in kiss-rpc's language as files of protobuf, for
// programs that call them from other languages: one file for each package of services, with the
// comments of the contracts. The JSON of the messages is that of their Go types, apart from 64-bit
// integers, which protobuf writes as strings. The numbers of the fields are those of the contract,
// or else the order of the fields.
//
//   - int8, int16 and int32 are int32, int and int64 are int64; the same for unsigned integers.
//   - time.Time is google.protobuf.Timestamp. What has no type in protobuf is
//     google.protobuf.Value: interfaces, types that encode themselves, messages that are no
//     structs. Slices of these, and slices of slices, are google.protobuf.ListValue.
//   - Several arguments or results are a message with a field for each.
//
// Files of services whose names protobuf cannot have are left out, and are part of the error.
func ToFiles(schemas ...*contract.Schema) (*descriptorpb.FileDescriptorSet, error) {
	files := make(map[string]*fileWriter)
	var mistakes []error
	for _, s := range schemas {
		if s.Kind != contract.Go && s.Kind != contract.Kiss {
			mistakes = append(mistakes, fmt.Errorf("contract: a contract of the kind %q has no form in protobuf", s.Kind))
			continue
		}
		for i := range s.Services {
			if err := checkNames(&s.Services[i]); err != nil {
				mistakes = append(mistakes, err)
				continue
			}
			pkg, name := split(s.Services[i].Name)
			if files[pkg] == nil {
				files[pkg] = newFileWriter(pkg)
			}
			files[pkg].taken[name] = true // before the names of messages
		}
	}
	for _, s := range schemas {
		for i := range s.Services {
			pkg, _ := split(s.Services[i].Name)
			if w := files[pkg]; w != nil && checkNames(&s.Services[i]) == nil {
				w.service(s, &s.Services[i])
			}
		}
	}
	set := new(descriptorpb.FileDescriptorSet)
	for _, w := range files {
		slices.Sort(w.file.Dependency)
		AddComments(w.file, w.docs)
		set.File = append(set.File, w.file)
	}
	slices.SortFunc(set.File, func(a, b *descriptorpb.FileDescriptorProto) int { return strings.Compare(a.GetName(), b.GetName()) })
	return set, errors.Join(mistakes...)
}

// checkNames returns an error if protobuf cannot have the names of the service.
func checkNames(v *contract.Service) error {
	if !protoreflect.FullName(v.Name).IsValid() {
		return fmt.Errorf("contract: protobuf cannot have a service with the name %q: use letters, digits, _ and dots", v.Name)
	}
	for _, m := range v.Methods {
		if !protoreflect.Name(m.Name).IsValid() {
			return fmt.Errorf("contract: protobuf cannot have a method with the name %q of %s: use letters, digits and _", m.Name, v.Name)
		}
	}
	return nil
}

func split(name string) (pkg, short string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

// fileWriter writes the services of a package and the messages that they use.
type fileWriter struct {
	file     *descriptorpb.FileDescriptorProto
	taken    map[string]bool   // names in the package
	messages map[string]string // names of messages by their contract
	docs     map[protoreflect.FullName]string
}

func newFileWriter(pkg string) *fileWriter {
	w := &fileWriter{
		file:     &descriptorpb.FileDescriptorProto{Name: proto.String("anser_services.proto"), Syntax: proto.String("proto3")},
		taken:    make(map[string]bool),
		messages: make(map[string]string),
		docs:     make(map[protoreflect.FullName]string),
	}
	if pkg != "" {
		w.file.Name = proto.String(strings.ReplaceAll(pkg, ".", "/") + "/anser_services.proto")
		w.file.Package = proto.String(pkg)
	}
	return w
}

// full returns the name with that of the package.
func (w *fileWriter) full(name string) protoreflect.FullName {
	if w.file.GetPackage() == "" {
		return protoreflect.FullName(name)
	}
	return protoreflect.FullName(w.file.GetPackage() + "." + name)
}

func (w *fileWriter) service(s *contract.Schema, v *contract.Service) {
	_, short := split(v.Name)
	var d *descriptorpb.ServiceDescriptorProto
	for _, before := range w.file.Service {
		if before.GetName() == short {
			d = before
		}
	}
	if d == nil {
		d = &descriptorpb.ServiceDescriptorProto{Name: proto.String(short)}
		w.file.Service = append(w.file.Service, d)
	}
	w.docs[protoreflect.FullName(v.Name)] = v.Doc
	if v.Deprecated {
		d.Options = &descriptorpb.ServiceOptions{Deprecated: proto.Bool(true)}
	}
	for i := range v.Methods {
		m := &v.Methods[i]
		w.docs[protoreflect.FullName(v.Name+"."+m.Name)] = m.Doc
		p := &descriptorpb.MethodDescriptorProto{
			Name:       proto.String(m.Name),
			InputType:  proto.String(w.top(s, m.Request, v.Name+"."+m.Name+".Args", m.Name+"Request", short+m.Name+"Request")),
			OutputType: proto.String(w.top(s, m.Reply, v.Name+"."+m.Name+".Results", m.Name+"Response", short+m.Name+"Response")),
		}
		if m.ClientStream {
			p.ClientStreaming = proto.Bool(true)
		}
		if m.ServerStream {
			p.ServerStreaming = proto.Bool(true)
		}
		if m.Deprecated {
			p.Options = &descriptorpb.MethodOptions{Deprecated: proto.Bool(true)}
		}
		if m.Idempotent {
			if p.Options == nil {
				p.Options = new(descriptorpb.MethodOptions)
			}
			p.Options.IdempotencyLevel = descriptorpb.MethodOptions_IDEMPOTENT.Enum()
		}
		d.Method = append(d.Method, p)
	}
}

// The types that stand for what protobuf has no type for.
const (
	valueType = "google.protobuf.Value"
	listType  = "google.protobuf.ListValue"
	timeType  = "google.protobuf.Timestamp"
	emptyType = "google.protobuf.Empty"
)

// known returns a type of protobuf itself, and imports its file.
func (w *fileWriter) known(name string) string {
	file := map[string]string{valueType: "struct", listType: "struct", timeType: "timestamp", emptyType: "empty"}[name]
	file = "google/protobuf/" + file + ".proto"
	if !slices.Contains(w.file.Dependency, file) {
		w.file.Dependency = append(w.file.Dependency, file)
	}
	return "." + name
}

// top returns the type of a request or reply. A tuple, which is a message with the name tuple, gets
// the first free one of some names.
func (w *fileWriter) top(s *contract.Schema, name, tuple string, names ...string) string {
	m := s.Message(name)
	switch {
	case m == nil:
		return w.known(emptyType)
	case m.Form == contract.InOrder && name == tuple:
		return w.message(s, m, names...)
	}
	return w.of(s, m)
}

// of returns the type of a message inside another one.
func (w *fileWriter) of(s *contract.Schema, m *contract.Message) string {
	if m.Form != contract.ByName {
		return w.known(valueType)
	}
	name, arguments, generic := strings.Cut(m.Name, "[")
	_, short := split(name)
	if generic {
		for part := range strings.FieldsFuncSeq(arguments, func(r rune) bool { return r == ',' || r == '[' || r == ']' }) {
			_, part = split(part)
			short += camel(part)
		}
	}
	return w.message(s, m, camel(short), camel(name))
}

// message adds a message with the first free one of some names, unless it is there.
func (w *fileWriter) message(s *contract.Schema, m *contract.Message, names ...string) string {
	bare := *m
	bare.At, bare.Doc = contract.Position{}, ""
	bare.Fields = slices.Clone(m.Fields)
	for i := range bare.Fields {
		bare.Fields[i].At, bare.Fields[i].Doc = contract.Position{}, ""
	}
	text, _ := json.Marshal(bare)
	key := string(text)
	if name, ok := w.messages[key]; ok {
		return "." + string(w.full(name))
	}
	name := unused(w.taken, names...)
	w.messages[key] = name
	d := &descriptorpb.DescriptorProto{Name: proto.String(name)}
	w.file.MessageType = append(w.file.MessageType, d)
	w.docs[w.full(name)] = m.Doc
	if m.Deprecated {
		d.Options = &descriptorpb.MessageOptions{Deprecated: proto.Bool(true)}
	}
	w.fields(s, m, d)
	return "." + string(w.full(name))
}

// unused takes the first free one of the names, or the last with a number.
func unused(taken map[string]bool, names ...string) string {
	for _, name := range names {
		if !taken[name] {
			taken[name] = true
			return name
		}
	}
	for i := 2; ; i++ {
		if name := fmt.Sprintf("%s%d", names[len(names)-1], i); !taken[name] {
			taken[name] = true
			return name
		}
	}
}
