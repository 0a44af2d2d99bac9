package gen

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"

	"github.com/anser-rpc/anser/cmd/anser/internal/kiss"
)

const mprt = protogen.GoImportPath("github.com/anser-rpc/anser/codec/msgpack/mprt")

// msgpack writes the methods that encode and decode a message in MessagePack. fields are the names
// of its fields in Go.
func (k *kissCode) msgpack(m *kiss.Message, fields []string) {
	name := exported(m.Name)
	k.P("// AnserMsgpackAppend writes the message; codec msgpack calls it.")
	k.P("func (x *", name, ") AnserMsgpackAppend(w *", k.in("Writer"), ") {")
	k.P("if !w.Map(", len(m.Fields), ") { return }")
	for i, f := range m.Fields {
		k.P("w.Key(", literal(f.Name), ")")
		k.appendField(f.Type, "x."+fields[i])
	}
	k.P("w.End()")
	k.P("}")
	k.P()
	k.P("// AnserMsgpackDecode sets the fields that r has; codec msgpack calls it.")
	k.P("func (x *", name, ") AnserMsgpackDecode(r *", k.in("Reader"), ") {")
	k.P("for range r.Map() {")
	k.P("switch key := r.Key(); string(key) {")
	for i, f := range m.Fields {
		k.P("case ", fmt.Sprintf("%q", f.Name), ":")
		k.decodeField(f.Type, "x."+fields[i])
	}
	k.P("default:")
	k.P("r.Skip(key)")
	k.P("}")
	k.P("}")
	k.P("r.End()")
	k.P("}")
	k.P()
}

func (k *kissCode) in(name string) string { return k.QualifiedGoIdent(mprt.Ident(name)) }

// literal returns the encoding of a string of at most 255 bytes as a string of Go.
func literal(s string) string {
	if len(s) < 32 {
		return fmt.Sprintf("%q", string([]byte{0xa0 | byte(len(s))})+s)
	}
	return fmt.Sprintf("%q", string([]byte{0xd9, byte(len(s))})+s)
}

// isBytes reports whether a type is []byte in Go.
func isBytes(t kiss.Type) bool {
	of := kiss.Scalars[t.Name]
	return t.Array && !t.Message && (of == "uint8" || of == "byte")
}

func (k *kissCode) appendField(t kiss.Type, field string) {
	switch {
	case isBytes(t):
		k.P("w.Bytes(", field, ")")
	case t.Array:
		k.P("if ", field, " == nil {")
		k.P("w.Nil()")
		k.P("} else if w.Array(len(", field, ")) {")
		k.P("for i := range ", field, " {")
		k.appendOne(t, field+"[i]")
		k.P("}")
		k.P("w.End()")
		k.P("}")
	case t.Message:
		k.P("if ", field, " == nil {")
		k.P("w.Nil()")
		k.P("} else {")
		k.appendOne(t, field)
		k.P("}")
	default:
		k.appendOne(t, field)
	}
}

func (k *kissCode) appendOne(t kiss.Type, value string) {
	if t.Message {
		k.P(value, ".AnserMsgpackAppend(w)")
		return
	}
	function, of := scalarOf(t)
	if of != "" {
		value = of + "(" + value + ")"
	}
	k.P("w.", function, "(", value, ")")
}

// scalarOf returns the name of the functions for a scalar, and the type that they take if it is
// another one.
func scalarOf(t kiss.Type) (function, of string) {
	switch name := kiss.Scalars[t.Name]; {
	case name == "int64":
		return "Int", ""
	case name == "uint64":
		return "Uint", ""
	case strings.HasPrefix(name, "int"):
		return "Int", "int64"
	case strings.HasPrefix(name, "uint"), name == "byte":
		return "Uint", "uint64"
	default:
		return strings.ToUpper(name[:1]) + name[1:], ""
	}
}

func (k *kissCode) decodeField(t kiss.Type, field string) {
	switch {
	case isBytes(t):
		k.P(field, " = r.Bytes(", field, ")")
	case t.Array:
		k.P("if n := r.Array(); n < 0 {")
		k.P("r.Absent(", field, " == nil)")
		k.P("} else {")
		k.P(field, " = make(", goType(t), ", n)")
		k.P("for i := range ", field, " {")
		k.decodeOne(t, field+"[i]")
		k.P("}")
		k.P("r.End()")
		k.P("}")
	case t.Message:
		k.P("if r.Nil() {")
		k.P("r.Absent(", field, " == nil)")
		k.P("} else {")
		k.P("if ", field, " == nil { ", field, " = new(", exported(t.Name), ") }")
		k.decodeOne(t, field)
		k.P("}")
	default:
		k.decodeOne(t, field)
	}
}

func (k *kissCode) decodeOne(t kiss.Type, place string) {
	if t.Message {
		k.P(place, ".AnserMsgpackDecode(r)")
		return
	}
	function, of := scalarOf(t)
	value := "r." + function + "()"
	if of != "" {
		value = kiss.Scalars[t.Name] + "(" + value + ")"
	}
	k.P(place, " = ", value)
}
