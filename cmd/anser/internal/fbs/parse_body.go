package fbs

import "strconv"

// body reads what is between braces: each is called for an element, and skips to the end of the
// element after a mistake. close is what ends an element.
func (p *parser) body(of, separator string, each func() bool) bool {
	if !p.expect("{", "before the body of "+of) {
		return false
	}
	for !p.tok.is("}") {
		if p.tok.kind == end {
			return p.want("\"}\" at the end of " + of)
		}
		if each() {
			continue
		}
		for depth := 0; ; {
			if p.tok.kind == end {
				return false
			}
			if depth == 0 && p.tok.is("}") && p.tok.kind == mark {
				break
			}
			t := p.advance()
			if t.kind == mark && (t.text == "(" || t.text == "{") {
				depth++
			} else if t.kind == mark && (t.text == ")" || t.text == "}") {
				depth--
			} else if t.kind == mark && t.text == separator && depth <= 0 {
				break
			}
		}
	}
	p.advance()
	return true
}

func (p *parser) object(t token) bool {
	name, ok := p.name("the " + t.text)
	if !ok {
		return false
	}
	o := &Object{Definition: p.define(t, name), Struct: t.text == "struct", Align: 1}
	what := t.text + " " + o.Name
	if o.Attributes, ok = p.metadata(); !ok {
		return false
	}
	ok = p.body(what, ";", func() bool {
		f, ok := p.field(o, what)
		if f != nil {
			o.Fields = append(o.Fields, f)
		}
		return ok
	})
	p.out.Objects = append(p.out.Objects, o)
	return ok
}

func (p *parser) field(o *Object, what string) (*Field, bool) {
	name, ok := p.name("a field of " + what)
	if !ok {
		return nil, false
	}
	if name.begins() && p.tok.kind == word {
		p.wrong(name.at, "want \"}\" at the end of %s before %q", what, name.text)
		return nil, false
	}
	f := &Field{Name: name.text, Doc: name.doc, At: name.at}
	if !p.expect(":", "and a type after field "+f.Name) {
		return nil, false
	}
	if f.ref, ok = p.typeOf("field " + f.Name); !ok {
		return nil, false
	}
	if p.tok.is("=") {
		p.advance()
		if f.value, ok = p.value("field "+f.Name, 0); !ok {
			return nil, false
		}
		if o.Struct {
			p.wrong(f.value.at, "field %s: a struct has no defaults: all its fields are always there", f.Name)
		}
	}
	if f.Attributes, ok = p.metadata(); !ok {
		return nil, false
	}
	return f, p.expect(";", "after field "+f.Name)
}

// value reads a default.
func (p *parser) value(of string, depth int) (*value, bool) {
	if depth > maxDepth {
		p.wrong(p.tok.at, "the default of %s has more than %d functions inside one another", of, maxDepth)
		return nil, false
	}
	v := &value{}
	at := p.tok.at
	if p.tok.is("+") || p.tok.is("-") {
		v.sign = p.advance().text
		if p.tok.kind != word {
			return nil, p.want("a constant such as inf after the sign")
		}
	}
	if p.tok.is("[") {
		p.advance()
		v.empty, v.at = true, at
		if !p.tok.is("]") {
			p.wrong(p.tok.at, "the only default of a vector is []")
			return nil, false
		}
		p.advance()
		return v, true
	}
	switch p.tok.kind {
	case word, integer, real, text:
	default:
		return nil, p.want("the default of " + of)
	}
	call := p.tok.kind == word && p.lexer.at(0) == '(' // with a blank between, attributes follow
	v.token = p.advance()
	v.at = at
	if call {
		p.advance()
		inner, ok := p.value(of, depth+1)
		if !ok {
			return nil, false
		}
		v.inner = inner
		return v, p.expect(")", "after the argument of "+v.text)
	}
	return v, true
}

func (p *parser) enum(t token, union bool) bool {
	name, ok := p.name("the " + t.text)
	if !ok {
		return false
	}
	e := &Enum{Definition: p.define(t, name), Union: union, Type: Int}
	what := t.text + " " + e.Name
	if union {
		e.Type = UType
	}
	switch {
	case p.tok.is(":"):
		p.advance()
		base, ok := p.name("the type of the values of " + what)
		if !ok {
			return false
		}
		e.Type = bases[base.text]
		if !e.Type.Integer() || e.Type == Bool {
			p.wrong(base.at, "the values of %s cannot be %s: use an integer type such as byte or int", what, base.text)
			e.Type = Int
		}
	case !union:
		p.want("\":\" and the type of the values after " + what + ", such as \": byte\"")
		return false
	}
	if e.Attributes, ok = p.metadata(); !ok {
		return false
	}
	e.Flags = e.Attributes.Get("bit_flags") != nil
	if union {
		e.Values = append(e.Values, &EnumValue{Name: "NONE", At: name.at})
	}
	v := newValues(p.report, e)
	ok = p.body(what, ",", func() bool {
		value, ok := p.enumValue(e, what, v)
		if value != nil {
			e.Values = append(e.Values, value)
		}
		return ok
	})
	if len(e.Values) == 0 {
		e.Values = append(e.Values, &EnumValue{Name: "NONE", At: name.at})
	}
	v.finish()
	p.out.Enums = append(p.out.Enums, e)
	return ok
}

func (p *parser) enumValue(e *Enum, what string, values *values) (*EnumValue, bool) {
	t := p.tok
	r, ok := p.dotted("the name of a value of " + what)
	if !ok {
		return nil, false
	}
	r.order = p.order()
	v := &EnumValue{Name: r.name, Doc: t.doc, At: t.at}
	if e.Union {
		v.Name = underscored(r.name)
		v.ref = &typeReference{reference: r}
		if p.tok.is(":") {
			p.advance()
			if v.ref, ok = p.typeOf("member " + v.Name); !ok {
				return nil, false
			}
			if v.ref.vector {
				p.wrong(v.ref.at, "member %s of %s cannot be a vector: put it into a table", v.Name, what)
				return nil, false
			}
		}
	} else if v.Name != underscored(v.Name) {
		p.wrong(t.at, "the name of a value has no dots: write %s", underscored(v.Name))
	}
	number := ""
	if p.tok.is("=") {
		p.advance()
		if p.tok.kind != integer {
			return nil, p.want("the number of value " + v.Name)
		}
		number = p.advance().text
	}
	values.number(v, number)
	if v.Attributes, ok = p.metadata(); !ok {
		return v, false
	}
	if p.tok.is("}") {
		return v, true
	}
	return v, p.expect(",", "or \"}\" after value "+v.Name)
}

func underscored(name string) string {
	b := []byte(name)
	for i := range b {
		if b[i] == '.' {
			b[i] = '_'
		}
	}
	return string(b)
}

func (p *parser) service(t token) bool {
	name, ok := p.name("the service")
	if !ok {
		return false
	}
	s := &Service{Definition: p.define(t, name)}
	if s.Attributes, ok = p.metadata(); !ok {
		return false
	}
	mistakes := len(p.errors)
	ok = p.body("rpc_service "+s.Name, ";", func() bool {
		m, ok := p.method()
		if m != nil {
			s.Methods = append(s.Methods, m)
		}
		return ok
	})
	if ok && len(s.Methods) == 0 && len(p.errors) == mistakes {
		p.wrong(s.At, "rpc_service %s has no methods: add one, or remove it", s.Name)
	}
	p.out.Services = append(p.out.Services, s)
	return ok
}

func (p *parser) method() (*Method, bool) {
	name, ok := p.name("a method")
	if !ok {
		return nil, false
	}
	m := &Method{Name: name.text, Doc: name.doc, At: name.at}
	if !p.expect("(", "after the name of method "+m.Name) {
		return nil, false
	}
	request, ok := p.dotted("the table that method " + m.Name + " takes")
	if !ok || !p.expect(")", "after the table that method "+m.Name+" takes") ||
		!p.expect(":", "and the table that method "+m.Name+" returns") {
		return nil, false
	}
	reply, ok := p.dotted("the table that method " + m.Name + " returns")
	if !ok {
		return nil, false
	}
	request.order, reply.order = p.order(), p.order()
	m.request, m.reply = &request, &reply
	if m.Attributes, ok = p.metadata(); !ok {
		return nil, false
	}
	p.streaming(m)
	return m, p.expect(";", "after method "+m.Name)
}

// streaming takes over the attributes of a method.
func (p *parser) streaming(m *Method) {
	m.Idempotent = m.Attributes.Get("idempotent") != nil
	m.Oneway = m.Attributes.Get("oneway") != nil
	a := m.Attributes.Get("streaming")
	if a == nil {
		return
	}
	switch a.Value {
	case "none":
	case "client":
		m.ClientStream = true
	case "server":
		m.ServerStream = true
	case "bidi":
		m.ClientStream, m.ServerStream = true, true
	default:
		p.wrong(a.At, "method %s: streaming is %s: want \"none\", \"client\", \"server\" or \"bidi\"", m.Name, strconv.Quote(shorten(a.Value)))
	}
}
