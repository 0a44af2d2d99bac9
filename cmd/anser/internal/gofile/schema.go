package gofile

import (
	"fmt"
	"go/token"
	"go/types"
	"path"
	"reflect"
	"strings"

	"github.com/anser-rpc/anser/contract"
)

// Schema returns the contract of the services in the file.
func (f *File) Schema() *contract.Schema {
	b := &builder{schema: &contract.Schema{Kind: contract.Go}, seen: map[string]bool{}}
	for _, s := range f.Services {
		out := contract.Service{Name: s.Name, Doc: s.Doc, Deprecated: s.Deprecated, At: position(s.At)}
		for _, m := range s.Methods {
			c := contract.Method{Name: m.Name, Doc: m.Doc, Deprecated: m.Deprecated, Idempotent: m.Idempotent, At: position(m.At)}
			switch m.Kind {
			case Tuple:
				c.Request = b.tuple(s.Name+"."+m.Name+".Args", "arg", m.Args)
				c.Reply = b.tuple(s.Name+"."+m.Name+".Results", "result", m.Results)
			case Oneway:
				c.Oneway, c.Request = true, b.message(m.In)
			default:
				c.Request, c.Reply = b.message(m.In), b.message(m.Out)
			}
			c.ServerStream = m.Kind == ServerStream || m.Kind == BothStream
			c.ClientStream = m.Kind == ClientStream || m.Kind == BothStream
			out.Methods = append(out.Methods, c)
		}
		b.schema.Services = append(b.schema.Services, out)
	}
	return b.schema
}

func position(p token.Position) contract.Position {
	return contract.Position{File: path.Base(p.Filename), Line: p.Line, Column: p.Column}
}

// builder adds types to a schema, each once.
type builder struct {
	schema *contract.Schema
	seen   map[string]bool
}

// qualified names a type with the name of its package, as Go code does.
func qualified(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return p.Name() })
}

// message returns the name of the message that t is.
func (b *builder) message(t types.Type) string {
	name := qualified(t)
	if b.seen[name] {
		return name
	}
	b.seen[name] = true
	m := contract.Message{Name: name, Form: contract.Opaque}
	place := len(b.schema.Messages)
	b.schema.Messages = append(b.schema.Messages, m)
	if s, ok := t.Underlying().(*types.Struct); ok && !encodesItself(t) {
		m.Form = contract.ByName
		m.Fields = b.fields(s)
	} else if !ok && !encodesItself(t) {
		m.Form, m.Fields = contract.InOrder, []contract.Field{{Name: "value", Type: b.typeOf(t)}}
	}
	b.schema.Messages[place] = m
	return name
}

// fields returns the fields of a struct; those of an embedded one are its own.
func (b *builder) fields(s *types.Struct) []contract.Field {
	var fields []contract.Field
	for i := range s.NumFields() {
		f := s.Field(i)
		tag := reflect.StructTag(s.Tag(i))
		inMsgpack, _, _ := strings.Cut(tag.Get("msgpack"), ",")
		inJSON, options, _ := strings.Cut(tag.Get("json"), ",")
		if inner, ok := f.Type().Underlying().(*types.Struct); ok && f.Embedded() && inMsgpack == "" && inJSON == "" {
			fields = append(fields, b.fields(inner)...)
			continue
		}
		if !f.Exported() || inMsgpack == "-" && inJSON == "-" {
			continue
		}
		c := contract.Field{Name: f.Name(), Type: b.typeOf(f.Type())}
		if inMsgpack != "" && inMsgpack != "-" {
			c.Name = inMsgpack
		}
		if json := inJSON; json != "" && json != "-" && json != c.Name {
			c.JSON = json
		} else if inJSON == "" && c.Name != f.Name() {
			c.JSON = f.Name()
		}
		if _, pointer := types.Unalias(f.Type()).(*types.Pointer); pointer || strings.Contains(options, "omitempty") {
			c.Presence = contract.Explicit
		}
		fields = append(fields, c)
	}
	return fields
}

// tuple adds the message of arguments or results and returns its name.
func (b *builder) tuple(name, other string, values []*types.Var) string {
	m := contract.Message{Name: name, Form: contract.InOrder}
	for i, v := range values {
		m.Fields = append(m.Fields, contract.Field{Name: ValueName(v, other, i), Type: b.typeOf(v.Type())})
	}
	b.schema.Messages = append(b.schema.Messages, m)
	return name
}

// ValueName is the name of an argument or result in messages: its own, or "arg1" and so on.
func ValueName(v *types.Var, other string, i int) string {
	if v.Name() == "" || v.Name() == "_" {
		return fmt.Sprintf("%s%d", other, i+1)
	}
	return v.Name()
}

func (b *builder) typeOf(t types.Type) contract.Type {
	switch u := types.Unalias(t).(type) {
	case *types.Pointer:
		return b.typeOf(u.Elem())
	case *types.Slice:
		if e, ok := u.Elem().Underlying().(*types.Basic); ok && e.Kind() == types.Byte {
			return contract.Type{Name: "bytes"}
		}
		if inner := b.typeOf(u.Elem()); inner.Key == "" && !inner.Repeated && inner.Length == 0 {
			inner.Repeated = true
			return inner
		}
		return contract.Type{Name: qualified(u.Elem()), Repeated: true}
	case *types.Array:
		if inner := b.typeOf(u.Elem()); inner.Key == "" && !inner.Repeated && inner.Length == 0 {
			inner.Length = int(u.Len())
			return inner
		}
		return contract.Type{Name: qualified(u)}
	case *types.Map:
		if inner := b.typeOf(u.Elem()); inner.Key == "" && !inner.Repeated && inner.Length == 0 {
			inner.Key = qualified(u.Key().Underlying())
			return inner
		}
		return contract.Type{Name: qualified(u)}
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if !encodesItself(t) {
			return contract.Type{Name: u.Name()}
		}
	case *types.Struct:
		if qualified(t) == "time.Time" {
			return contract.Type{Name: "time"}
		}
		return contract.Type{Name: "message", Of: b.message(t)}
	case *types.Slice, *types.Array, *types.Map:
		if !encodesItself(t) {
			return b.typeOf(u)
		}
	case *types.Interface:
		return contract.Type{Name: "any"}
	}
	return contract.Type{Name: "message", Of: b.message(t)}
}

// encodesItself reports whether the type decides itself what is sent of it.
func encodesItself(t types.Type) bool {
	for _, name := range []string{"MarshalMsg", "MarshalJSON", "MarshalText", "MarshalBinary", "ProtoReflect"} {
		if m, _, _ := types.LookupFieldOrMethod(t, true, nil, name); m != nil {
			if _, ok := m.(*types.Func); ok {
				return true
			}
		}
	}
	return false
}
