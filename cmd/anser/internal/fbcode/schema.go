package fbcode

import (
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

// described are the methods of the types that know their schema.
var described = []string{"FlatBuffersType", "OwnCodec", "MarshalJSON", "UnmarshalJSON"}

// schema writes the binary schema of the file, and the methods by which Anser's codec finds it.
func (w *writer) schema() {
	var tables []*fbs.Object
	for _, o := range w.file.Objects {
		if !o.Struct {
			tables = append(tables, o)
		}
	}
	if len(tables) == 0 {
		return
	}
	w.need("codec")
	w.need("fbcodec")
	stem := w.options.Stem + "_"
	source := stem + "schema"
	w.declare(source, tables[0].At)
	w.f("// %s is the schema of the tables in this file.\nvar %s = fbcodec.NewSource(%s)\n\n", source, source, literal(fbs.Binary{Builtins: true}.Marshal(w.file)))
	w.f("var (\n")
	for _, o := range tables {
		w.declare(stem+Type(o.Name), o.At)
		w.f("%s%s = fbcodec.NewType[%s, %s](%s, %q)\n", stem, Type(o.Name), Type(o.Name), Object(o.Name), source, o.FullName())
	}
	w.f(")\n\n")
	for _, o := range tables {
		of := stem + Type(o.Name)
		for _, name := range []string{Type(o.Name), Object(o.Name)} {
			w.f("// FlatBuffersType returns the table with its schema, for the codec.\nfunc (*%s) FlatBuffersType() *fbcodec.Type { return %s }\n\n", name, of)
			w.f("// OwnCodec returns the codec of FlatBuffers, which calls with this message use.\nfunc (*%s) OwnCodec() codec.Codec { return fbcodec.Own() }\n\n", name)
			w.f("// MarshalJSON returns the JSON of FlatBuffers.\nfunc (t *%s) MarshalJSON() ([]byte, error) { return %s.ToJSON(t) }\n\n", name, of)
			w.f("// UnmarshalJSON reads the JSON of FlatBuffers.\nfunc (t *%s) UnmarshalJSON(text []byte) error { return %s.FromJSON(text, t) }\n\n", name, of)
		}
	}
}

// literal writes bytes as a string of Go, in lines of 32 bytes.
func literal(data []byte) string {
	var b strings.Builder
	for len(data) > 0 {
		n := min(32, len(data))
		if b.Len() > 0 {
			b.WriteString(" +\n")
		}
		b.WriteByte('"')
		for _, c := range data[:n] {
			if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "\\x%02x", c)
			}
		}
		b.WriteByte('"')
		data = data[n:]
	}
	return b.String()
}
