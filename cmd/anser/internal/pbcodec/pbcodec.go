// Package pbcodec generates Anser's code for protobuf messages: for each message of a .proto file,
// methods of the type of protoc-gen-go that encode in one pass, and decode with a handful of
// allocations. codec/protobuf uses them; docs/codecs.md describes what they do.
package pbcodec

import (
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/gofeaturespb"

	"github.com/anser-rpc/anser/cmd/anser/internal/gocode"
)

const (
	// Suffix is the end of the names of generated files.
	Suffix = ".codec.go"

	runtime   = protogen.GoImportPath("github.com/anser-rpc/anser/codec/protobuf/pbrt")
	protoimpl = protogen.GoImportPath("google.golang.org/protobuf/runtime/protoimpl")

	// runtimeVersion is the pbrt.Version that the generated code needs.
	runtimeVersion = 1
	// layoutVersion is the version of protoc-gen-go's messages that the generated code accesses.
	layoutVersion = 20
)

// Generate writes the code for the messages of file, whose Go types protoc-gen-go generates from
// the same request. It writes nothing if the file has no messages. If protoc-gen-go runs on the
// same plugin, it must run after the code of all files was generated, since it changes what the
// plugin says of messages in hybrid API.
func Generate(plugin *protogen.Plugin, file *protogen.File, version string) {
	if len(file.Messages) == 0 {
		return
	}
	if !isHybrid(file) {
		generate(plugin, file, version, "", "")
		return
	}
	// protoc-gen-go writes two files, too, with the same conditions.
	generate(plugin, file, version, "", "!protoopaque")
	levels := map[*protogen.Message]gofeaturespb.GoFeatures_APILevel{}
	setOpaque(file.Messages, levels)
	generate(plugin, file, version, "_protoopaque", "protoopaque")
	for m, level := range levels {
		m.APILevel = level
	}
}

// setOpaque changes the API of messages, and of those inside them, and remembers what it was.
func setOpaque(list []*protogen.Message, levels map[*protogen.Message]gofeaturespb.GoFeatures_APILevel) {
	for _, m := range list {
		levels[m] = m.APILevel
		m.APILevel = gofeaturespb.GoFeatures_API_OPAQUE
		setOpaque(m.Messages, levels)
	}
}

// generate writes a file, for the layout of messages in protoc-gen-go's file of the same variant.
func generate(plugin *protogen.Plugin, file *protogen.File, version, variant, constraint string) {
	g := &generator{
		GeneratedFile: plugin.NewGeneratedFile(file.GeneratedFilenamePrefix+variant+Suffix, file.GoImportPath),
		plugin:        plugin,
		file:          file,
		text:          map[*protogen.Message]bool{},
	}
	gocode.Header(g.GeneratedFile, version, file.Desc.Path(), string(file.GoPackageName), constraint)
	g.P("const (")
	g.P("// These fail to compile if the code does not fit the runtime or the messages.")
	g.P("_ = ", runtime.Ident("EnforceVersion"), "(", runtimeVersion, " - ", runtime.Ident("Version"), ")")
	g.P("_ = ", runtime.Ident("EnforceVersion"), "(", runtime.Ident("Version"), " - ", runtimeVersion, ")")
	g.P("_ = ", protoimpl.Ident("EnforceVersion"), "(", layoutVersion, " - ", protoimpl.Ident("MinVersion"), ")")
	g.P("_ = ", protoimpl.Ident("EnforceVersion"), "(", protoimpl.Ident("MaxVersion"), " - ", layoutVersion, ")")
	g.P(")")
	g.messages(file.Messages)
}

// generator generates one file.
type generator struct {
	*protogen.GeneratedFile
	plugin *protogen.Plugin
	file   *protogen.File
	text   map[*protogen.Message]bool // whether messages have text, as far as it is known
}

func (g *generator) messages(list []*protogen.Message) {
	for _, m := range list {
		if m.Desc.IsMapEntry() {
			continue
		}
		if reason := unserved(m); reason != "" {
			g.P()
			g.P("// ", m.GoIdent.GoName, " is left to the standard library: ", reason, ".")
		} else {
			g.message(m)
		}
		g.messages(m.Messages)
	}
}

// unserved returns why a message gets no code, or "".
func unserved(m *protogen.Message) string {
	if o, ok := m.Desc.Options().(*descriptorpb.MessageOptions); ok && o.GetMessageSetWireFormat() {
		return "it is a message set"
	}
	for _, f := range m.Fields {
		if l, ok := f.Desc.(interface{ IsLazy() bool }); ok && l.IsLazy() && isOpaque(m) {
			return "field " + string(f.Desc.Name()) + " is decoded lazily"
		}
		if f.GoName == method {
			return "field " + string(f.Desc.Name()) + " has the name of the method"
		}
		for _, name := range []string{"Get" + f.GoName, "Set" + f.GoName, "Has" + f.GoName, "Clear" + f.GoName} {
			if name == method {
				return "a method of field " + string(f.Desc.Name()) + " has the name of the method"
			}
		}
	}
	for _, o := range m.Oneofs {
		if o.GoName == method {
			return "oneof " + string(o.Desc.Name()) + " has the name of the method"
		}
	}
	return ""
}

const method = "AnserProtobuf"

// direct reports whether the code may call the functions of m by name: it is in the same package,
// generated in the same run, and has them. In a file in hybrid API, functions have other parameters
// if the tag protoopaque is set, which files in another API do not follow.
func (g *generator) direct(m *protogen.Message) bool {
	if m.GoIdent.GoImportPath != g.file.GoImportPath {
		return false
	}
	f := g.plugin.FilesByPath[m.Desc.ParentFile().Path()]
	return f != nil && f.Generate && isHybrid(f) == isHybrid(g.file) && unserved(m) == ""
}

func isHybrid(f *protogen.File) bool { return f.APILevel == gofeaturespb.GoFeatures_API_HYBRID }

// hasText reports whether OpOwn has anything to do in m.
func (g *generator) hasText(m *protogen.Message) bool {
	return g.findText(m, map[*protogen.Message]bool{})
}

func (g *generator) findText(m *protogen.Message, seen map[*protogen.Message]bool) bool {
	if seen[m] {
		return false
	}
	seen[m] = true
	if known, ok := g.text[m]; ok {
		return known
	}
	found := false
	for _, f := range m.Fields {
		if g.fieldHasText(f, seen) {
			found = true
		}
	}
	if found {
		g.text[m] = true
	}
	return found
}

// fieldHasText reports whether OpOwn visits f. The keys and values of maps are copied when they
// are decoded, except for messages.
func (g *generator) fieldHasText(f *protogen.Field, seen map[*protogen.Message]bool) bool {
	if f.Desc.IsMap() {
		f = f.Message.Fields[1]
		return f.Message != nil && g.messageHasText(f.Message, seen)
	}
	switch f.Desc.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return true
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return g.messageHasText(f.Message, seen)
	}
	return false
}

func (g *generator) messageHasText(m *protogen.Message, seen map[*protogen.Message]bool) bool {
	if g.direct(m) {
		return g.findText(m, seen)
	}
	if m.GoIdent.GoImportPath == g.file.GoImportPath && unserved(m) != "" {
		return false
	}
	return !isStandard(m)
}

// isStandard reports whether m is a type of the standard library for protobuf, which has no
// generated code.
func isStandard(m *protogen.Message) bool {
	const module = "google.golang.org/protobuf/"
	path := string(m.GoIdent.GoImportPath)
	return len(path) > len(module) && path[:len(module)] == module
}
