package record

import (
	"encoding/json"
	"slices"
	"strings"
)

// secretNames are what names of secret fields contain, in the form of plainName.
var secretNames = []string{
	"password", "passwd", "passphrase", "secret", "token", "authorization", "credential", "apikey", "privatekey", "cookie",
}

// hider replaces the values of secret fields. It is safe for concurrent use.
type hider struct {
	secret, public map[string]bool // names, in the form of plainName
	paths          []string        // ends of paths, with a dot in front
}

func newHider(secret, public []string) *hider {
	h := &hider{secret: make(map[string]bool), public: make(map[string]bool)}
	for _, s := range secret {
		if strings.Contains(s, ".") {
			h.paths = append(h.paths, "."+s)
		} else {
			h.secret[plainName(s)] = true
		}
	}
	for _, s := range public {
		h.public[plainName(s)] = true
	}
	return h
}

// plainName returns a name in lower case, without what separates words.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// hides reports whether a field with the name, at the path, is secret.
func (h *hider) hides(name, path string) bool {
	plain := plainName(name)
	if h.secret[plain] {
		return true
	}
	for _, end := range h.paths {
		if strings.HasSuffix("."+strings.ReplaceAll(path, "[*]", ""), end) {
			return true
		}
	}
	return !h.public[plain] && slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(plain, s) })
}

// redact returns text, which must be valid JSON, with the values of secret fields replaced, and
// adds their paths, which begin with prefix, to paths.
func (h *hider) redact(text []byte, of *schema, prefix string, paths *[]string) []byte {
	w := redaction{hider: h, in: text, out: make([]byte, 0, len(text)), paths: paths}
	w.value(of, prefix)
	return w.out
}

// redaction is a pass over one message.
type redaction struct {
	*hider
	in    []byte
	at    int
	out   []byte
	paths *[]string
}

// value copies the value at w.at.
func (w *redaction) value(of *schema, path string) {
	w.space()
	switch w.in[w.at] {
	case '{':
		w.object(of, path)
	case '[':
		w.array(of, path)
	default:
		start := w.at
		w.scalar()
		w.out = append(w.out, w.in[start:w.at]...)
	}
}

func (w *redaction) object(of *schema, path string) {
	w.copyByte() // {
	for {
		w.space()
		switch w.in[w.at] {
		case '}':
			w.copyByte()
			return
		case ',':
			w.copyByte()
			continue
		}
		start := w.at
		w.scalar()
		key := w.in[start:w.at]
		w.out = append(w.out, key...)
		w.space()
		w.copyByte() // :
		name := unquote(key)
		below := path + "." + name
		if of.secretField(name) || w.hides(name, below) {
			w.hide(below)
		} else {
			w.value(of.field(name), below)
		}
	}
}

func (w *redaction) array(of *schema, path string) {
	w.copyByte() // [
	for {
		w.space()
		switch w.in[w.at] {
		case ']':
			w.copyByte()
			return
		case ',':
			w.copyByte()
		default:
			w.value(of.element(), path+"[*]")
		}
	}
}

// hide replaces the value at w.at, which keeps its type, so that a replayed request can be
// decoded.
func (w *redaction) hide(path string) {
	w.space()
	start := w.at
	switch b := w.in[w.at]; {
	case b == '{':
		w.hideObject()
	case b == '[':
		w.skip()
		w.out = append(w.out, "[]"...)
	case b == 'n':
		w.skip()
		w.out = append(w.out, "null"...)
		return // there was nothing
	case b == 't' || b == 'f':
		w.skip()
		w.out = append(w.out, "false"...)
	case b == '"':
		w.skip()
		w.out = append(w.out, masked(w.in[start+1:w.at-1])...)
	default:
		w.skip()
		w.out = append(w.out, '0')
	}
	if !slices.Contains(*w.paths, path) {
		*w.paths = append(*w.paths, path)
	}
}

// masked returns the text that takes the place of a secret one: protobuf's JSON has numbers of 64
// bits in quotes, and bytes in base64, which "redacted" happens to be.
func masked(text []byte) string {
	switch {
	case len(text) == 0:
		return `""`
	case len(text) <= 20 && strings.Trim(string(text), "-0123456789") == "":
		return `"0"`
	}
	return `"redacted"`
}

// hideObject replaces all values of an object and keeps its keys.
func (w *redaction) hideObject() {
	w.copyByte() // {
	var none []string
	own := w.paths
	defer func() { w.paths = own }()
	w.paths = &none
	for {
		w.space()
		switch w.in[w.at] {
		case '}':
			w.copyByte()
			return
		case ',':
			w.copyByte()
			continue
		}
		start := w.at
		w.scalar()
		w.out = append(w.out, w.in[start:w.at]...)
		w.space()
		w.copyByte() // :
		w.hide("")
	}
}

func (w *redaction) copyByte() {
	w.out = append(w.out, w.in[w.at])
	w.at++
}

// space skips white space.
func (w *redaction) space() {
	for w.at < len(w.in) && strings.IndexByte(" \t\r\n", w.in[w.at]) >= 0 {
		w.at++
	}
}

// scalar moves behind a text, number or word.
func (w *redaction) scalar() {
	if w.in[w.at] != '"' {
		for w.at < len(w.in) && strings.IndexByte(" \t\r\n,]}", w.in[w.at]) < 0 {
			w.at++
		}
		return
	}
	for w.at++; w.in[w.at] != '"'; w.at++ {
		if w.in[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
}

// skip moves behind any value.
func (w *redaction) skip() {
	for depth := 0; ; {
		w.space()
		switch w.in[w.at] {
		case '{', '[':
			depth++
			w.at++
		case '}', ']':
			depth--
			w.at++
		case ',', ':':
			w.at++
			continue
		default:
			w.scalar()
		}
		if depth == 0 {
			return
		}
	}
}

// unquote returns the text of a key.
func unquote(key []byte) string {
	if plain := key[1 : len(key)-1]; !slices.Contains(plain, '\\') {
		return string(plain)
	}
	var name string
	if json.Unmarshal(key, &name) != nil {
		return string(key)
	}
	return name
}
