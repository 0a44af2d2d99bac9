package protocontract

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser/contract"
)

type protoName = protoreflect.Name

// Docs returns the comments of a schema by the full names of what they are about.
func Docs(s *contract.Schema) map[protoreflect.FullName]string {
	docs := make(map[protoreflect.FullName]string)
	for i := range s.Services {
		v := &s.Services[i]
		docs[protoreflect.FullName(v.Name)] = v.Doc
		for _, m := range v.Methods {
			docs[protoreflect.FullName(v.Name+"."+m.Name)] = m.Doc
		}
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		docs[protoreflect.FullName(m.Name)] = m.Doc
		for _, f := range m.Fields {
			docs[protoreflect.FullName(m.Name+"."+f.Name)] = f.Doc
		}
	}
	for i := range s.Enums {
		e := &s.Enums[i]
		docs[protoreflect.FullName(e.Name)] = e.Doc
		for _, v := range e.Values { // which are outside of the enum
			docs[protoreflect.FullName(e.Name).Parent().Append(protoName(v.Name))] = v.Doc
		}
	}
	return docs
}

// The numbers of fields in google/protobuf/descriptor.proto, from which paths are made.
const (
	fileMessages, fileEnums, fileServices        = 4, 5, 6
	messageFields, messageMessages, messageEnums = 2, 3, 4
	enumValues                                   = 2
	serviceMethods                               = 2
)

// AddComments adds comments, by the full names of what they are about, to a file that has none.
func AddComments(f *descriptorpb.FileDescriptorProto, docs map[protoreflect.FullName]string) {
	c := &commenter{docs: docs}
	pkg := protoreflect.FullName(f.GetPackage())
	for i, m := range f.MessageType {
		c.message(m, pkg, []int32{fileMessages, int32(i)})
	}
	for i, e := range f.EnumType {
		c.enum(e, pkg, []int32{fileEnums, int32(i)})
	}
	for i, s := range f.Service {
		path := []int32{fileServices, int32(i)}
		name := c.add(pkg, s.GetName(), path)
		for j, m := range s.Method {
			c.add(name, m.GetName(), append(path[:2:2], serviceMethods, int32(j)))
		}
	}
	f.SourceCodeInfo = &descriptorpb.SourceCodeInfo{Location: c.locations}
}

type commenter struct {
	docs      map[protoreflect.FullName]string
	locations []*descriptorpb.SourceCodeInfo_Location
}

// add adds the comment of a name and returns its full name.
func (c *commenter) add(in protoreflect.FullName, name string, path []int32) protoreflect.FullName {
	full := protoreflect.FullName(name)
	if in != "" {
		full = in.Append(protoName(name))
	}
	if doc := strings.TrimSpace(c.docs[full]); doc != "" {
		text := " " + strings.ReplaceAll(doc, "\n", "\n ") + "\n"
		c.locations = append(c.locations, &descriptorpb.SourceCodeInfo_Location{Path: path, Span: []int32{0, 0, 0}, LeadingComments: proto.String(text)})
	}
	return full
}

func (c *commenter) message(m *descriptorpb.DescriptorProto, in protoreflect.FullName, path []int32) {
	path = path[:len(path):len(path)]
	name := c.add(in, m.GetName(), path)
	for i, f := range m.Field {
		c.add(name, f.GetName(), append(path, messageFields, int32(i)))
	}
	for i, n := range m.NestedType {
		c.message(n, name, append(path, messageMessages, int32(i)))
	}
	for i, e := range m.EnumType {
		c.enum(e, name, append(path, messageEnums, int32(i)))
	}
}

func (c *commenter) enum(e *descriptorpb.EnumDescriptorProto, in protoreflect.FullName, path []int32) {
	path = path[:len(path):len(path)]
	c.add(in, e.GetName(), path)
	for i, v := range e.Value {
		c.add(in, v.GetName(), append(path, enumValues, int32(i)))
	}
}
