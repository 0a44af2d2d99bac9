package kiss

import (
	"cmp"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/anser-rpc/anser/contract"
)

// expect reads the given punctuation, or reports what is missing.
func (p *parser) expect(text, where string) bool {
	if p.next.text == text {
		p.advance()
		return true
	}
	p.wrong(p.next.at, "want %q %s, not %s", text, where, p.next.describe())
	return false
}

// nameOf reads a name, or reports what is missing.
func (p *parser) nameOf(what string) (token, bool) {
	if isName(p.next.text) {
		return p.advance(), true
	}
	p.wrong(p.next.at, "want the name of %s, not %s", what, p.next.describe())
	return token{}, false
}

// file reads all definitions. It ends at the first mistake of syntax: what follows could be
// misread.
func (p *parser) file() {
	p.advance()
	for !p.next.end {
		doc := p.next.doc
		if !p.expect("@", "before message or service") {
			return
		}
		kind := p.advance()
		if !p.expect(":", "after "+strconv.Quote(kind.text)) {
			return
		}
		var ok bool
		switch kind.text {
		case "message":
			ok = p.message(doc)
		case "service":
			ok = p.service(doc)
		default:
			p.wrong(kind.at, "%s is unknown: a definition begins with @message: or @service:", kind.describe())
		}
		if !ok {
			return
		}
	}
}

func (p *parser) message(doc string) bool {
	name, ok := p.nameOf("the message")
	if !ok || !p.expect("{", "after the name of message "+name.text) {
		return false
	}
	m := &Message{Name: name.text, Doc: doc, At: name.at}
	p.out.Messages = append(p.out.Messages, m)
	for p.next.text != "}" {
		f, ok := p.field()
		if !ok || !p.expect(":", "and a number after field "+f.Name) {
			return false
		}
		number := p.advance()
		n, err := strconv.Atoi(number.text)
		if err != nil || n < 1 {
			p.wrong(number.at, "want the number of field %s, from 1, not %s", f.Name, number.describe())
			return false
		}
		f.Number = n
		m.Fields = append(m.Fields, f)
		if !p.expect(";", "after field "+f.Name) {
			return false
		}
	}
	p.advance()
	slices.SortStableFunc(m.Fields, func(a, b *Field) int { return cmp.Compare(a.Number, b.Number) })
	return true
}

// field reads a type and a name.
func (p *parser) field() (*Field, bool) {
	doc := p.next.doc
	t, ok := p.typeOf("a type")
	if !ok {
		return nil, false
	}
	name, ok := p.nameOf("the value of type " + t.Name)
	if !ok {
		return nil, false
	}
	return &Field{Name: name.text, Doc: doc, Type: t, At: name.at}, true
}

func (p *parser) typeOf(what string) (Type, bool) {
	if !isName(p.next.text) {
		p.wrong(p.next.at, "want %s, not %s", what, p.next.describe())
		return Type{}, false
	}
	name := p.advance()
	t := Type{Name: name.text, Message: Scalars[name.text] == "", at: name.at}
	if p.next.text == "[" {
		p.advance()
		if !p.expect("]", "after [: arrays have any length") {
			return Type{}, false
		}
		t.Array = true
	}
	return t, true
}

func (p *parser) service(doc string) bool {
	name, ok := p.nameOf("the service")
	if !ok || !p.expect("{", "after the name of service "+name.text) {
		return false
	}
	s := &Service{Name: name.text, Doc: doc, At: name.at}
	p.out.Services = append(p.out.Services, s)
	for p.next.text != "}" {
		doc := p.next.doc
		reply, ok := p.typeOf("the type that a function returns")
		if !ok {
			return false
		}
		name, ok := p.nameOf("the function")
		if !ok || !p.expect("(", "after the name of function "+name.text) {
			return false
		}
		m := &Method{Name: name.text, Doc: doc, Reply: reply, At: name.at}
		s.Methods = append(s.Methods, m)
		for p.next.text != ")" {
			if len(m.Args) > 0 && !p.expect(",", "or \")\" after an argument") {
				return false
			}
			f, ok := p.field()
			if !ok {
				return false
			}
			m.Args = append(m.Args, f)
		}
		p.advance()
		if !p.expect(";", "after function "+m.Name) {
			return false
		}
	}
	p.advance()
	return true
}

// maxArgs is the maximum number of arguments of a function.
const maxArgs = 64

// check finds mistakes that need the whole file.
func (p *parser) check() {
	defined := make(map[string]bool)
	for _, m := range p.out.Messages {
		p.define(defined, "message", m.Name, m.At)
		if r, _ := utf8.DecodeRuneInString(m.Name); !unicode.IsUpper(r) {
			p.wrong(m.At, "message %s must begin with a capital letter", m.Name)
		}
		names := make(map[string]bool)
		for i, f := range m.Fields {
			if names[f.Name] {
				p.wrong(f.At, "message %s has two fields %s", m.Name, f.Name)
			}
			names[f.Name] = true
			switch {
			case i > 0 && m.Fields[i-1].Number == f.Number:
				p.wrong(f.At, "field %s has the number %d, which field %s has already", f.Name, f.Number, m.Fields[i-1].Name)
			case f.Number != i+1 && (i == 0 || m.Fields[i-1].Number == i):
				p.wrong(f.At, "message %s has no field with the number %d: numbers are 1, 2, 3 and so on", m.Name, i+1)
			}
		}
	}
	for _, s := range p.out.Services {
		p.define(defined, "service", s.Name, s.At)
		names := make(map[string]bool)
		for _, m := range s.Methods {
			if names[m.Name] {
				p.wrong(m.At, "service %s has two functions %s", s.Name, m.Name)
			}
			names[m.Name] = true
			if len(m.Args) > maxArgs {
				p.wrong(m.At, "function %s has %d arguments, more than %d: use a message", m.Name, len(m.Args), maxArgs)
			}
			arguments := make(map[string]bool)
			for _, a := range m.Args {
				if arguments[a.Name] {
					p.wrong(a.At, "function %s has two arguments %s", m.Name, a.Name)
				}
				arguments[a.Name] = true
			}
		}
	}
	messages := make(map[string]bool)
	for _, m := range p.out.Messages {
		messages[m.Name] = true
	}
	known := func(t Type) {
		if t.Message && !messages[t.Name] {
			p.wrong(t.at, "there is no type and no message %s", t.Name)
		}
	}
	for _, m := range p.out.Messages {
		for _, f := range m.Fields {
			known(f.Type)
		}
	}
	for _, s := range p.out.Services {
		for _, m := range s.Methods {
			known(m.Reply)
			for _, a := range m.Args {
				known(a.Type)
			}
		}
	}
	p.errors.Sort()
}

func (p *parser) define(defined map[string]bool, what, name string, at contract.Position) {
	if defined[name] || Scalars[name] != "" {
		p.wrong(at, "%s %s: the name is taken", what, name)
	}
	defined[name] = true
}
