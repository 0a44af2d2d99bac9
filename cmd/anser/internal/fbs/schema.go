package fbs

import (
	"strconv"

	"github.com/anser-rpc/anser/contract"
)

// Contract returns the contract of all files. A table has the numbers of its fields, from 1; a
// union is a message with the numbers of its members, and takes two numbers of its table, of which
// the field has the second.
func (s *Schema) Contract() *contract.Schema {
	out := &contract.Schema{Kind: contract.FlatBuffers}
	for _, f := range s.Files {
		for _, o := range f.Objects {
			out.Messages = append(out.Messages, o.contract())
		}
		for _, e := range f.Enums {
			if e.Union {
				out.Messages = append(out.Messages, e.union())
			} else {
				out.Enums = append(out.Enums, e.contract())
			}
		}
		for _, v := range f.Services {
			out.Services = append(out.Services, v.contract())
		}
	}
	return out
}

func (o *Object) contract() contract.Message {
	m := contract.Message{Name: o.FullName(), Doc: Text(o.Doc), At: o.At}
	if o.Struct {
		m.Form = contract.InPlace
		if o.Attributes.Get("force_align") != nil {
			m.Align = o.Align
		}
	}
	types := make(map[*Field]bool)
	for _, f := range o.Fields {
		types[f.TypeField] = true
	}
	for _, f := range o.Fields {
		if types[f] {
			continue
		}
		c := contract.Field{Name: f.Name, Doc: Text(f.Doc), Type: f.Type.contract(), Default: f.defaultText(), Deprecated: f.Deprecated, At: f.At}
		if !o.Struct {
			c.Number = int32(f.Slot()) + 1
		}
		switch {
		case f.Required:
			c.Presence = contract.Required
		case f.Type.Base.Scalar() && f.Optional:
			c.Presence = contract.Explicit
		}
		m.Fields = append(m.Fields, c)
	}
	return m
}

// defaultText returns the default, of an enum its number, or "" for zero.
func (f *Field) defaultText() string {
	switch b := f.Type.Base; {
	case f.Default.Given:
		return strconv.Quote(f.Default.Text)
	case b == Bool && f.Default.Int != 0:
		return "true"
	case b.Integer() && f.Default.Int != 0:
		return formatInt(f.Default.Int, b)
	case b.Real() && f.Default.Float != 0:
		return strconv.FormatFloat(f.Default.Float, 'g', -1, 64)
	}
	return ""
}

func (t Type) contract() contract.Type {
	if t.Series() {
		c := t.Of().contract()
		if t.Base == Array {
			c.Length = t.Length
		} else {
			c.Repeated = true
		}
		return c
	}
	switch {
	case t.Object != nil:
		return contract.Type{Name: "message", Of: t.Object.FullName()}
	case t.Enum != nil && t.Base == Union:
		return contract.Type{Name: "message", Of: t.Enum.FullName()}
	case t.Enum != nil && !t.Enum.Union:
		return contract.Type{Name: "enum", Of: t.Enum.FullName()}
	}
	return contract.Type{Name: t.Base.String()}
}

func (e *Enum) union() contract.Message {
	m := contract.Message{Name: e.FullName(), Doc: Text(e.Doc), Form: contract.OneOf, At: e.At}
	for _, v := range e.Values {
		if v.Number == 0 {
			continue // NONE
		}
		m.Fields = append(m.Fields, contract.Field{Name: v.Name, Doc: Text(v.Doc), Number: int32(v.Number), Type: v.Type.contract(), At: v.At})
	}
	return m
}

func (e *Enum) contract() contract.Enum {
	c := contract.Enum{Name: e.FullName(), Doc: Text(e.Doc), Type: e.Type.String(), Flags: e.Flags, At: e.At}
	for _, v := range e.Values {
		c.Values = append(c.Values, contract.EnumValue{Name: v.Name, Number: v.Number, Doc: Text(v.Doc), Deprecated: v.Attributes.Get("deprecated") != nil, At: v.At})
	}
	return c
}

func (s *Service) contract() contract.Service {
	c := contract.Service{Name: s.FullName(), Doc: Text(s.Doc), Deprecated: s.Attributes.Get("deprecated") != nil, At: s.At}
	for _, m := range s.Methods {
		method := contract.Method{
			Name: m.Name, Doc: Text(m.Doc), Request: m.Request.FullName(), Reply: m.Reply.FullName(),
			ClientStream: m.ClientStream, ServerStream: m.ServerStream, Oneway: m.Oneway,
			Idempotent: m.Idempotent && !m.ClientStream && !m.ServerStream, Deprecated: m.Attributes.Get("deprecated") != nil, At: m.At,
		}
		if m.Oneway {
			method.Reply = ""
		}
		c.Methods = append(c.Methods, method)
	}
	return c
}
