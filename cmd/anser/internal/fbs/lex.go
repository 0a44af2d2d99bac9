package fbs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/anser-rpc/anser/contract"
)

// kind is a kind of token.
type kind uint8

const (
	end kind = iota // of the file
	word
	integer
	real
	text
	mark // one character of punctuation
)

// token is a part of the text.
type token struct {
	kind kind
	text string // of a text without quotes and escapes
	doc  []string
	at   contract.Position
}

// is reports whether the token is the punctuation, or the word.
func (t token) is(s string) bool { return (t.kind == mark || t.kind == word) && t.text == s }

// describe says what a token is, in an error.
func (t token) describe() string {
	switch t.kind {
	case end:
		return "the end of the file"
	case text:
		return "the text " + strconv.Quote(shorten(t.text))
	}
	return strconv.Quote(shorten(t.text))
}

func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// lexer reads tokens one after the other.
type lexer struct {
	*report
	name         string
	rest         []byte
	line, column int
}

func newLexer(r *report, name string, content []byte) *lexer {
	return &lexer{r, name, bytes.TrimPrefix(content, []byte("\ufeff")), 1, 1}
}

func (l *lexer) here() contract.Position {
	return contract.Position{File: l.name, Line: l.line, Column: l.column}
}

// take returns the first n bytes of the rest and goes on after them.
func (l *lexer) take(n int) string {
	s := string(l.rest[:n])
	l.rest = l.rest[n:]
	if newlines := strings.Count(s, "\n"); newlines > 0 {
		l.line += newlines
		l.column = n - strings.LastIndexByte(s, '\n')
	} else {
		l.column += n
	}
	return s
}

// at returns byte i of the rest, or 0.
func (l *lexer) at(i int) byte {
	if i < len(l.rest) {
		return l.rest[i]
	}
	return 0
}

// blanks skips blanks and comments, and returns documentation. It reports whether it went well.
func (l *lexer) blanks() (doc []string, ok bool) {
	fresh := l.line == 1 && l.column == 1 // a line has begun, and has no token yet
	for {
		n := 0
		for strings.IndexByte(" \t\r\n", l.at(n)) >= 0 && n < len(l.rest) {
			n++
		}
		if strings.Contains(l.take(n), "\n") {
			fresh = true
		}
		switch {
		case l.at(0) == '/' && l.at(1) == '/':
			at, size := l.here(), bytes.IndexAny(l.rest, "\r\n")
			if size < 0 {
				size = len(l.rest)
			}
			comment := l.take(size)
			if !strings.HasPrefix(comment, "///") {
				continue
			}
			if !fresh {
				l.wrong(at, "documentation must be above what it describes, on a line of its own: use // for a comment here")
				return nil, false
			}
			doc = append(doc, strings.ToValidUTF8(comment[3:], "\ufffd"))
		case l.at(0) == '/' && l.at(1) == '*':
			at, size := l.here(), bytes.Index(l.rest[2:], []byte("*/"))
			if size < 0 {
				l.wrong(at, "the comment has no end: add */")
				return nil, false
			}
			if strings.Contains(l.take(size+4), "\n") {
				fresh = true
			}
		default:
			return doc, true
		}
	}
}

// next returns the next token, and false after it reported a mistake.
func (l *lexer) next() (token, bool) {
	doc, ok := l.blanks()
	t := token{doc: doc, at: l.here()}
	if !ok {
		return t, false
	}
	switch c := l.at(0); {
	case len(l.rest) == 0:
		return t, true
	case isLetter(c):
		n := 1
		for isLetter(l.at(n)) || isDigit(l.at(n)) {
			n++
		}
		t.kind, t.text = word, l.take(n)
	case strings.IndexByte("{}()[]<>,:;=", c) >= 0:
		t.kind, t.text = mark, l.take(1)
	case c == '"' || c == '\'':
		t.kind = text
		t.text, ok = l.quoted(c)
		return t, ok
	case c == '+' || c == '-' || c == '.' || isDigit(c):
		return l.number(t)
	default:
		r, size := utf8.DecodeRune(l.rest)
		l.wrong(t.at, "%q is not part of a schema", r)
		l.take(size)
		return t, false
	}
	return t, true
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// number reads an integer, a real, inf with a sign, or a mark that only looks like one.
func (l *lexer) number(t token) (token, bool) {
	n := 0
	if c := l.at(0); c == '+' || c == '-' {
		n++
		if isLetter(l.at(1)) { // -inf, +nan, -rad(…)
			t.kind, t.text = mark, l.take(1)
			return t, true
		}
	} else if c == '.' && !isDigit(l.at(1)) {
		t.kind, t.text = mark, l.take(1)
		return t, true
	}
	t.kind = integer
	digit, exponent := isDigit, byte('e')
	if l.at(n) == '0' && l.at(n+1)|0x20 == 'x' {
		n += 2
		digit, exponent = isHex, 'p'
	}
	start, digits := n, 0
	for {
		switch c := l.at(n); {
		case digit(c):
			digits++
		case c == '.' && t.kind == integer:
			t.kind = real
		default:
			if digits > 0 && c|0x20 == exponent {
				t.kind = real
				n++
				if l.at(n) == '+' || l.at(n) == '-' {
					n++
				}
				for isDigit(l.at(n)) {
					n++
				}
			}
			for isLetter(l.at(n)) || isDigit(l.at(n)) || l.at(n) == '.' {
				n, digits = n+1, -1
			}
			t.text = l.take(n)
			if _, err := strconv.ParseFloat(t.text, 64); digits <= 0 || n == start || t.kind == real && isSyntax(err) {
				l.wrong(t.at, "%q is not a number", shorten(t.text))
				return t, false
			}
			return t, true
		}
		n++
	}
}

// isSyntax reports whether an error of package strconv is about anything but the range.
func isSyntax(err error) bool {
	return err != nil && !strings.Contains(err.Error(), strconv.ErrRange.Error())
}

// quoted reads a text with its quotes.
func (l *lexer) quoted(quote byte) (string, bool) {
	at := l.here()
	l.take(1)
	var b strings.Builder
	high := rune(-1) // the first half of a surrogate pair
	for {
		c := l.at(0)
		if high >= 0 && (c != '\\' || l.at(1) != 'u') {
			l.wrong(l.here(), "half of a surrogate pair is missing: write \\u twice, or the character itself")
			return "", false
		}
		switch {
		case len(l.rest) == 0:
			l.wrong(at, "the text has no end: add %c", quote)
			return "", false
		case c == quote:
			l.take(1)
			if !utf8.ValidString(b.String()) {
				l.wrong(at, "the text is not UTF-8")
				return "", false
			}
			return b.String(), true
		case c < ' ':
			l.wrong(l.here(), "a text has no line breaks and control characters: use an escape such as \\n")
			return "", false
		case c != '\\':
			b.WriteByte(c)
			l.take(1)
			continue
		}
		here := l.here()
		plain := strings.IndexByte(`ntrbf"'\/`, l.at(1))
		switch {
		case len(l.rest) > 1 && plain >= 0:
			b.WriteByte("\n\t\r\b\f\"'\\/"[plain])
			l.take(2)
		case l.at(1) == 'x':
			n, ok := l.hex(2)
			if !ok {
				return "", false
			}
			b.WriteByte(byte(n))
		case l.at(1) == 'u':
			n, ok := l.hex(4)
			switch r := rune(n); {
			case !ok:
				return "", false
			case (r >= 0xd800 && r < 0xdc00) == (high >= 0) && r >= 0xd800 && r < 0xe000, high >= 0 && (r < 0xdc00 || r >= 0xe000):
				l.wrong(here, "this is half of a surrogate pair without the other one")
				return "", false
			case r >= 0xd800 && r < 0xdc00:
				high = r
			case high >= 0:
				b.WriteRune(0x10000 + (high&0x3ff)<<10 + r&0x3ff)
				high = -1
			default:
				b.WriteRune(r)
			}
		default:
			l.wrong(here, "the escape %s is unknown", fmt.Sprintf("%q", l.rest[:min(2, len(l.rest))]))
			return "", false
		}
	}
}

// hex reads an escape with digits.
func (l *lexer) hex(digits int) (uint64, bool) {
	at := l.here()
	if len(l.rest) < 2+digits {
		l.wrong(at, "the escape needs %d hexadecimal digits", digits)
		return 0, false
	}
	n, err := strconv.ParseUint(string(l.rest[2:2+digits]), 16, 32)
	if err != nil {
		l.wrong(at, "the escape needs %d hexadecimal digits", digits)
		return 0, false
	}
	l.take(2 + digits)
	return n, true
}

func itoa(n int) string { return strconv.Itoa(n) }
