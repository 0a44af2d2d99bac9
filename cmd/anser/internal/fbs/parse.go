package fbs

import (
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/contract"
)

// reference is a name in the text, with the namespace where it is used.
type reference struct {
	name      string
	namespace string
	at        contract.Position
	order     int // of the definition that contains it
}

// typeReference is a type in the text.
type typeReference struct {
	reference
	vector bool
	length int // of an array
}

// value is a default in the text: a sign, a function, or one token.
type value struct {
	token
	sign  string // "+" or "-" before a word
	inner *value // the argument of the function that the word names
	empty bool   // []
}

// maxDepth is how deep functions of defaults may be nested.
const maxDepth = 64

// parser reads the declarations of one file.
type parser struct {
	*lexer
	tok       token
	broken    bool // the rest of the file cannot be read
	out       *File
	namespace string
	includes  bool // may follow
}

// parse reads a file. What it refers to is not looked up yet.
func parse(r *report, path string, content []byte) *File {
	p := &parser{lexer: newLexer(r, path, content), includes: true}
	p.out = &File{Path: path, attributes: make(map[string]bool)}
	p.advance()
	for p.tok.kind != end && !p.broken {
		if !p.declaration() {
			p.recover()
		}
	}
	return p.out
}

// advance returns the current token and reads the next one.
func (p *parser) advance() token {
	current := p.tok
	next, ok := p.lexer.next()
	if !ok {
		p.broken = true
		next.kind, next.text = end, ""
	}
	p.tok = next
	return current
}

// want reports that something else was expected, unless the reason is reported already.
func (p *parser) want(what string) bool {
	if !p.broken {
		p.wrong(p.tok.at, "want %s, not %s", what, p.tok.describe())
	}
	return false
}

// expect reads the given punctuation, or reports what is missing.
func (p *parser) expect(s, where string) bool {
	if p.tok.is(s) && p.tok.kind == mark {
		p.advance()
		return true
	}
	return p.want(strconv.Quote(s) + " " + where)
}

// name reads a name, or reports what is missing.
func (p *parser) name(what string) (token, bool) {
	if p.tok.kind == word {
		return p.advance(), true
	}
	return token{}, p.want("the name of " + what)
}

// dotted reads a name with dots, or reports what is missing.
func (p *parser) dotted(what string) (reference, bool) {
	if p.tok.kind != word {
		return reference{}, p.want(what)
	}
	first, ok := p.advance(), true
	r := reference{name: first.text, namespace: p.namespace, at: first.at}
	var b strings.Builder
	b.WriteString(first.text)
	for ok && p.tok.is(".") {
		p.advance()
		var part token
		part, ok = p.name("what follows the dot")
		b.WriteString("." + part.text)
	}
	r.name = b.String()
	return r, ok
}

// text reads a text, or reports what is missing.
func (p *parser) text(what string) (token, bool) {
	if p.tok.kind == text {
		return p.advance(), true
	}
	return token{}, p.want(what + " in quotes")
}

// declarations are the words that begin one.
var declarations = []string{
	"include", "native_include", "namespace", "table", "struct", "enum", "union", "rpc_service",
	"root_type", "file_identifier", "file_extension", "attribute",
}

// begins reports whether a token could begin a declaration.
func (t token) begins() bool {
	if t.kind == word {
		for _, d := range declarations {
			if t.text == d {
				return true
			}
		}
	}
	return false
}

// recover skips to the next declaration after a mistake.
func (p *parser) recover() {
	for depth := 0; p.tok.kind != end; {
		if depth == 0 && p.tok.begins() && p.tok.at.Column == 1 {
			return
		}
		t := p.advance()
		switch {
		case t.kind != mark:
		case t.text == "{":
			depth++
		case t.text == "}":
			if depth--; depth <= 0 {
				return
			}
		case t.text == ";" && depth == 0 && p.tok.begins():
			return
		}
	}
}

func (p *parser) declaration() bool {
	t := p.tok
	if t.kind != word || !t.begins() {
		if t.is("{") {
			p.wrong(t.at, "this is JSON: a schema has declarations only")
			p.broken = true
			return false
		}
		if t.is(";") {
			p.wrong(t.at, "there is a \";\" too many: remove it")
			p.advance()
			return true
		}
		return p.want("a declaration such as table, struct, enum, union or rpc_service")
	}
	p.advance()
	if t.text != "include" && t.text != "native_include" {
		p.includes = false
	}
	switch t.text {
	case "include":
		return p.include(t)
	case "native_include":
		_, ok := p.text("a header of C++")
		return ok && p.expect(";", "after native_include")
	case "namespace":
		p.namespace = ""
		if !p.tok.is(";") {
			r, ok := p.dotted("the name of the namespace")
			if !ok {
				return false
			}
			p.namespace = r.name
		}
		return p.expect(";", "after the namespace")
	case "table", "struct":
		return p.object(t)
	case "enum":
		return p.enum(t, false)
	case "union":
		return p.enum(t, true)
	case "rpc_service":
		return p.service(t)
	case "root_type":
		r, ok := p.dotted("the name of the root type")
		r.order = p.order()
		p.out.root = &r
		return ok && p.expect(";", "after the root type")
	case "file_identifier":
		id, ok := p.text("a file identifier")
		if ok && len(id.text) != 4 {
			p.wrong(id.at, "the file identifier %q has %d bytes: it must have 4", shorten(id.text), len(id.text))
		}
		p.out.Identifier = id.text
		return ok && p.expect(";", "after the file identifier")
	case "file_extension":
		extension, ok := p.text("a file extension")
		p.out.Extension = extension.text
		return ok && p.expect(";", "after the file extension")
	}
	return p.attribute()
}

func (p *parser) include(t token) bool {
	name, ok := p.text("the name of the file to include")
	if !ok || !p.expect(";", "after the name of the file to include") {
		return false
	}
	if !p.includes {
		p.wrong(t.at, "includes come before all other declarations: move it up")
		return true
	}
	p.out.Includes = append(p.out.Includes, &Include{Name: name.text, At: name.at})
	return true
}

func (p *parser) attribute() bool {
	name := p.tok
	if name.kind != word && name.kind != text {
		return p.want("the name of an attribute")
	}
	p.advance()
	p.out.attributes[name.text] = true
	return p.expect(";", "after the name of the attribute")
}

// order returns the place of the next definition in the file.
func (p *parser) order() int {
	return len(p.out.Objects) + len(p.out.Enums) + len(p.out.Services)
}

func (p *parser) define(t token, name token) Definition {
	return Definition{Name: name.text, Namespace: p.namespace, Doc: t.doc, File: p.out, At: name.at, order: p.order()}
}

// metadata reads attributes, if there are any.
func (p *parser) metadata() (Attributes, bool) {
	if !p.tok.is("(") {
		return nil, true
	}
	p.advance()
	var list Attributes
	for {
		t := p.tok
		if t.kind != word && t.kind != text {
			return nil, p.want("the name of an attribute")
		}
		p.advance()
		a := Attribute{Name: t.text, At: t.at}
		if p.tok.is(":") {
			p.advance()
			v := p.tok
			switch v.kind {
			case text:
				a.Text, a.Value = true, v.text
			case integer:
				n, err := parseInt(v.text, Int)
				if err != "" {
					p.wrong(v.at, "%s of attribute %s %s", v.text, a.Name, err)
				}
				a.Value = strconv.FormatInt(n, 10)
			default:
				return nil, p.want("a text or an integer after attribute " + a.Name)
			}
			p.advance()
		}
		if list.Get(a.Name) != nil {
			p.wrong(a.At, "the attribute %s is there twice: remove one", a.Name)
		} else {
			list = append(list, a)
		}
		if p.tok.is(")") {
			p.advance()
			return list, true
		}
		if !p.expect(",", "or \")\" after attribute "+a.Name) {
			return nil, false
		}
	}
}

// typeOf reads a type.
func (p *parser) typeOf(of string) (*typeReference, bool) {
	vector := p.tok.is("[")
	if vector {
		p.advance()
		if p.tok.is("[") {
			p.wrong(p.tok.at, "a vector cannot contain vectors: put the inner one into a table")
			return nil, false
		}
	}
	r, ok := p.dotted("the type of " + of)
	t := &typeReference{reference: r, vector: vector}
	t.order = p.order()
	if !ok || !vector {
		return t, ok
	}
	if p.tok.is(":") {
		p.advance()
		n := p.tok
		length, err := parseInt(n.text, UShort)
		if n.kind != integer || err != "" || length < 1 {
			p.wrong(n.at, "want the length of the array, from 1 to 65535, not %s", n.describe())
			return nil, false
		}
		t.length = int(length)
		p.advance()
	}
	return t, p.expect("]", "after the type of the elements")
}
