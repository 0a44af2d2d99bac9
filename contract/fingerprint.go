package contract

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
)

// Fingerprint returns 16 hexadecimal digits that depend on what a caller and a server must agree
// about to understand each other: whether the method is a stream, oneway or a call, and the
// numbers, names, types, presence and defaults of all fields of its messages and of those inside
// them. Comments, the order of declarations, and the names of messages do not matter. It returns
// "" if the schema has no such method.
func (s *Schema) Fingerprint(service, method string) string {
	v := s.Service(service)
	if v == nil {
		return ""
	}
	m := v.Method(method)
	if m == nil {
		return ""
	}
	p := &printer{schema: s, hash: sha256.New(), seen: map[string]int{}}
	p.print("%s %t %t %t\n", s.Kind, m.ClientStream, m.ServerStream, m.Oneway)
	p.message(m.Request)
	p.message(m.Reply)
	return hex.EncodeToString(p.hash.Sum(nil)[:8])
}

// printer writes the parts of a method's contract into a hash.
type printer struct {
	schema *Schema
	hash   hash.Hash
	seen   map[string]int // messages and enums by name, numbered in the order of their use
}

func (p *printer) print(format string, args ...any) { fmt.Fprintf(p.hash, format, args...) }

// once writes the number of a type and reports whether it was used before.
func (p *printer) once(name string) bool {
	n, used := p.seen[name]
	if !used {
		n = len(p.seen)
		p.seen[name] = n
	}
	p.print("#%d", n)
	return used
}

func (p *printer) message(name string) {
	m := p.schema.Message(name)
	if m == nil {
		io.WriteString(p.hash, "none\n")
		return
	}
	if p.once(name) {
		return
	}
	fields := m.Fields
	if m.Form == ByNumber {
		fields = slices.Clone(fields)
		slices.SortFunc(fields, func(a, b Field) int { return cmp.Compare(a.Number, b.Number) })
	}
	if m.Form == ByName {
		fields = slices.Clone(fields)
		slices.SortFunc(fields, func(a, b Field) int { return cmp.Compare(a.Name, b.Name) })
	}
	if m.Form == Opaque { // nothing but the name is known
		p.print("%q", m.Name)
	}
	if m.Align != 0 {
		p.print("align %d ", m.Align)
	}
	p.print("%s{", m.Form)
	for _, f := range fields {
		p.print("%d %q %q %s %t %d %s %s %q %q %t ", f.Number, f.Name, f.JSON, f.Type.Name, f.Type.Repeated, f.Type.Length, f.Type.Key, f.Presence, f.OneOf, f.Default, f.Packed)
		switch f.Type.Name {
		case "message", "group":
			p.message(f.Type.Of)
		case "enum":
			p.enum(f.Type.Of)
		}
		p.print("\n")
	}
	p.print("}")
}

func (p *printer) enum(name string) {
	e := p.schema.Enum(name)
	if e == nil || p.once(name) {
		return
	}
	values := slices.Clone(e.Values)
	slices.SortFunc(values, func(a, b EnumValue) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
	p.print("%s %t{", e.Type, e.Closed)
	for _, v := range values {
		p.print("%d %q ", v.Number, v.Name)
	}
	p.print("}")
}
