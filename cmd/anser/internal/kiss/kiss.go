// Package kiss reads the interface definition language of kiss-rpc:
//
//	@message:UserInfo {
//		string name:1;
//		int[] ages:2;
//	}
//
//	@service:Contacts {
//		UserInfo find(UserInfo query);
//	}
package kiss

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/anser-rpc/anser/cmd/anser/internal/mistakes"
	"github.com/anser-rpc/anser/contract"
)

// File is what a file defines, in its order.
type File struct {
	Messages []*Message
	Services []*Service
}

// Message is a type with fields.
type Message struct {
	Name   string
	Doc    string
	Fields []*Field // in the order of their numbers
	At     contract.Position
}

// Field is a field of a message.
type Field struct {
	Name   string
	Doc    string
	Type   Type
	Number int
	At     contract.Position
}

// Type is the type of a value.
type Type struct {
	Name    string // of a scalar in the language, or of a message
	Message bool
	Array   bool
	at      contract.Position
}

// Service is a set of methods.
type Service struct {
	Name    string
	Doc     string
	Methods []*Method
	At      contract.Position
}

// Method is a function of a service.
type Method struct {
	Name  string
	Doc   string
	Reply Type
	Args  []*Field // without numbers
	At    contract.Position
}

// Scalars are the types that are not messages, with those of Go.
var Scalars = map[string]string{
	"bool": "bool", "byte": "int8", "ubyte": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
	"long": "int64", "ulong": "uint64", "float": "float32", "double": "float64", "char": "byte", "string": "string",
}

// maxFile is the largest file that is read, in bytes.
const maxFile = 16 << 20

// Parse reads a file, whose name is for errors, which are a mistakes.List.
func Parse(name string, text []byte) (*File, error) {
	p := &parser{name: name, text: text, line: 1, column: 1}
	if len(text) > maxFile {
		p.wrong(p.here(), "the file is larger than %d MiB", maxFile>>20)
		return nil, p.errors
	}
	p.file()
	if len(p.errors) == 0 {
		p.check()
	}
	if len(p.errors) > 0 {
		return nil, p.errors
	}
	return &p.out, nil
}

// token is a word, a number, or one character of punctuation.
type token struct {
	text string
	at   contract.Position
	doc  string // comment directly above
	end  bool   // of the file
}

// parser reads tokens one after the other.
type parser struct {
	name         string
	text         []byte
	line, column int
	next         token
	out          File
	errors       mistakes.List
}

func (p *parser) here() contract.Position {
	return contract.Position{File: p.name, Line: p.line, Column: p.column}
}

func (p *parser) wrong(at contract.Position, format string, args ...any) {
	p.errors.Add(at, format, args...)
}

// take returns the first n bytes of the text and goes on after them.
func (p *parser) take(n int) string {
	s := string(p.text[:n])
	p.text = p.text[n:]
	if newlines := strings.Count(s, "\n"); newlines > 0 {
		p.line += newlines
		p.column = n - strings.LastIndexByte(s, '\n')
	} else {
		p.column += n
	}
	return s
}

// advance reads the next token.
func (p *parser) advance() token {
	current := p.next
	var doc []string
	for {
		blank := 0
		for blank < len(p.text) && strings.IndexByte(" \t\r\n\f\v", p.text[blank]) >= 0 {
			blank++
		}
		if strings.Count(p.take(blank), "\n") > 1 {
			doc = nil // an empty line separates a comment from what follows
		}
		if !strings.HasPrefix(string(p.text[:min(2, len(p.text))]), "//") {
			break
		}
		size := len(p.text)
		if i := strings.IndexByte(string(p.text), '\n'); i >= 0 {
			size = i
		}
		own := p.column == 1 || p.line > current.at.Line
		line := strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(p.take(size), "//"), " "), " \t\r")
		if own { // not behind something on the same line
			doc = append(doc, line)
		}
	}
	p.next = token{at: p.here(), doc: strings.Trim(strings.Join(doc, "\n"), "\n")}
	if len(p.text) == 0 {
		p.next.end = true
		return current
	}
	r, size := utf8.DecodeRune(p.text)
	if isWord(r) {
		for n := size; ; n += size {
			if r, size = utf8.DecodeRune(p.text[n:]); !isWord(r) || size == 0 {
				p.next.text = p.take(n)
				return current
			}
		}
	}
	p.next.text = p.take(size)
	return current
}

func isWord(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func isName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && isWord(r) && !unicode.IsDigit(r)
}

// describe says what a token is, in an error.
func (t token) describe() string {
	if t.end {
		return "the end of the file"
	}
	return fmt.Sprintf("%q", t.text)
}
