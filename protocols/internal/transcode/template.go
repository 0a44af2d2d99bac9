// Package transcode maps HTTP requests to methods with protobuf messages as the annotation
// google.api.http says: templates of paths, and the fields that path, query and body set. It knows
// nothing of calls and connections.
package transcode

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Template is a path with variables, such as "/v1/{name=shelves/*/books/**}:publish".
type Template struct {
	text      string
	segments  []segment
	verb      string
	variables []Variable
}

// Variable is a part of the path that sets a field.
type Variable struct {
	// Field is the path of the field: "name", or "book.name".
	Field string
	// Pattern is what the part matches: "*", or "shelves/*/books/**".
	Pattern string

	from, to int  // segments of the template; to is -1 with a **
	multi    bool // it can have several segments
}

// segment is a part between slashes: a literal, * for any, or ** for any number of them.
type segment struct {
	text string
	wild bool // text is "*" or "**"
}

const (
	one  = "*"
	rest = "**"
)

// ParseTemplate parses a template in the grammar of google.api.HttpRule. Literals are those
// characters that a path can have without escapes, so each path has one form.
func ParseTemplate(text string) (*Template, error) {
	p := &templateParser{rest: text, t: &Template{text: text}}
	if err := p.parse(); err != nil {
		return nil, fmt.Errorf("path template %q: %w", text, err)
	}
	return p.t, nil
}

// String returns the template as it was written.
func (t *Template) String() string { return t.text }

// Variables returns the variables in their order. They are shared and must not be changed.
func (t *Template) Variables() []Variable { return t.variables }

// Shape returns the template without the names of its variables: templates with the same shape
// match the same paths.
func (t *Template) Shape() string {
	var b strings.Builder
	for _, s := range t.segments {
		b.WriteByte('/')
		b.WriteString(s.text)
	}
	if len(t.segments) == 0 {
		b.WriteByte('/')
	}
	if t.verb != "" {
		b.WriteString(":" + t.verb)
	}
	return b.String()
}

// templateParser reads a template from left to right.
type templateParser struct {
	rest string
	t    *Template
}

func (p *templateParser) parse() error {
	if !p.take("/") {
		return errors.New("it does not begin with a slash")
	}
	if p.rest == "" {
		return nil
	}
	for {
		if err := p.segment(); err != nil {
			return err
		}
		if !p.take("/") {
			break
		}
	}
	if p.take(":") {
		if p.t.verb = p.rest; !isLiteral(p.rest) || strings.Contains(p.rest, ":") {
			return fmt.Errorf("the verb %q is not a word", p.rest)
		}
		p.rest = ""
	}
	if p.rest != "" {
		return fmt.Errorf("%q is not expected here", p.rest)
	}
	for i, s := range p.t.segments {
		if s.text == rest && s.wild && i != len(p.t.segments)-1 {
			return errors.New("there is a segment behind **")
		}
	}
	return nil
}

func (p *templateParser) take(prefix string) bool {
	after, found := strings.CutPrefix(p.rest, prefix)
	if found {
		p.rest = after
	}
	return found
}

// segment reads a segment, or a variable with its own ones.
func (p *templateParser) segment() error {
	if p.take("{") {
		return p.variable()
	}
	end := strings.IndexByte(p.rest, '/')
	text := p.rest[:max(end, 0)]
	if end < 0 { // a verb can follow
		end = len(p.rest)
		if colon := strings.LastIndexByte(p.rest, ':'); colon >= 0 {
			end = colon
		}
		text = p.rest[:end]
	}
	p.rest = p.rest[end:]
	return p.add(text)
}

func (p *templateParser) add(text string) error {
	wild := text == one || text == rest
	if !wild && !isLiteral(text) {
		return fmt.Errorf("the segment %q is not one of the characters that a path has without escapes", text)
	}
	p.t.segments = append(p.t.segments, segment{text, wild})
	return nil
}

// variable reads what follows an opening brace.
func (p *templateParser) variable() error {
	inside, after, found := strings.Cut(p.rest, "}")
	if !found {
		return errors.New("a brace is not closed")
	}
	p.rest = after
	field, pattern, has := strings.Cut(inside, "=")
	if !has {
		pattern = one
	}
	for name := range strings.SplitSeq(field, ".") {
		if !isName(name) {
			return fmt.Errorf("the variable %q is not the name of a field", field)
		}
	}
	for _, v := range p.t.variables {
		if v.Field == field {
			return fmt.Errorf("the variable %s occurs twice", field)
		}
	}
	v := Variable{Field: field, Pattern: pattern, from: len(p.t.segments)}
	for text := range strings.SplitSeq(pattern, "/") {
		if strings.ContainsAny(text, ":={") {
			return fmt.Errorf("the pattern of the variable %s has the segment %q", field, text)
		}
		if err := p.add(text); err != nil {
			return err
		}
		v.multi = v.multi || text == rest
	}
	v.to = len(p.t.segments)
	v.multi = v.multi || v.to-v.from > 1
	if p.t.segments[v.to-1] == (segment{rest, true}) {
		v.to = -1
	}
	p.t.variables = append(p.t.variables, v)
	if p.rest != "" && p.rest[0] != '/' && p.rest[0] != ':' {
		return fmt.Errorf("neither a slash nor a verb follows the variable %s", field)
	}
	return nil
}

// isName reports whether s is an identifier of protobuf.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// isLiteral reports whether s is a segment of a path that needs no escapes, other than the ones
// that stand for folders.
func isLiteral(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("-._~!$&'()+,;=:@", c) < 0 {
			return false
		}
	}
	return s != "" && s != "." && s != ".."
}

// values returns the values of the variables in a path that matches. ok is false if one is not
// text.
func (t *Template) values(parts []string) (values []string, ok bool) {
	values = make([]string, len(t.variables))
	for i := range t.variables {
		v := &t.variables[i]
		to := v.to
		if to < 0 {
			to = len(parts)
		}
		var b strings.Builder
		for n, part := range parts[min(v.from, to):to] {
			if n > 0 {
				b.WriteByte('/')
			}
			unescape(&b, part, v.multi)
		}
		if values[i] = b.String(); !isText(values[i]) {
			return nil, false
		}
	}
	return values, true
}

// unescape writes a part without escapes. An escaped slash stays as it is in a value of several
// segments, where it would look like a further one.
func unescape(b *strings.Builder, part string, keepSlash bool) {
	for i := 0; i < len(part); i++ {
		if part[i] != '%' || i+2 >= len(part) {
			b.WriteByte(part[i])
			continue
		}
		c := unhex(part[i+1])<<4 | unhex(part[i+2])
		if c == '/' && keepSlash {
			b.WriteString(part[i : i+3])
		} else {
			b.WriteByte(c)
		}
		i += 2
	}
}

func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 0
}

// isText reports whether a value is UTF-8 without control characters.
func isText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return utf8.ValidString(s)
}

// split returns the segments of an escaped path. ok is false for a path that no template matches:
// one with an empty segment, with a broken escape, or with "." and "..", escaped or not.
func split(path string) (parts []string, ok bool) {
	if path == "" || path[0] != '/' {
		return nil, false
	}
	if path == "/" {
		return nil, true
	}
	parts = strings.Split(path[1:], "/")
	var b strings.Builder
	for _, part := range parts {
		if part == "" || !wellEscaped(part) {
			return nil, false
		}
		b.Reset()
		unescape(&b, part, false)
		if plain := b.String(); plain == "." || plain == ".." {
			return nil, false
		}
	}
	return parts, true
}

func wellEscaped(part string) bool {
	for i := 0; i < len(part); i++ {
		if part[i] == '%' {
			if i+2 >= len(part) || !isHex(part[i+1]) || !isHex(part[i+2]) {
				return false
			}
			i += 2
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}
