package record

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/codec"
)

// secretNames are what names of secret fields contain, in the form of plainName.
var secretNames = []string{
	"password", "passwd", "passphrase", "secret", "token", "authorization", "credential", "apikey", "privatekey", "cookie",
	"accesskey", "passcode", "pwd", "bearer", "jwt",
}

// hider replaces the values of secret fields. It is safe for concurrent use.
type hider struct {
	secret, public map[string]bool // names, in the form of plainName
	ends           []pathEnd
	packed         func(url string) *schema // of a message in a google.protobuf.Any; nil: none is known
}

func newHider(secret, public []string) *hider {
	h := &hider{secret: make(map[string]bool), public: make(map[string]bool)}
	for _, s := range secret {
		if strings.Contains(s, ".") {
			h.ends = append(h.ends, newPathEnd(s))
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
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// hidesName reports whether fields with the name are secret wherever they are.
func (h *hider) hidesName(name string) bool {
	plain := plainName(name)
	return h.secret[plain] ||
		!h.public[plain] && slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(plain, s) })
}

// step returns the step to a field.
func (h *hider) step(name string) step {
	s := step{name: name}
	if len(h.ends) > 0 {
		s.parts = partsOf(name)
	}
	return s
}

// hides reports whether the field to which the steps lead is secret.
func (h *hider) hides(steps []step) bool {
	return h.hidesName(steps[len(steps)-1].name) ||
		slices.ContainsFunc(h.ends, func(end pathEnd) bool { return end.matches(steps) })
}

// redact returns text, which must be valid JSON, with the values of secret fields replaced, and
// adds their paths, which begin with prefix, to paths. Its time is proportional to the text.
func (h *hider) redact(text []byte, of *schema, prefix string, paths *redactedPaths) []byte {
	w := redaction{hider: h, in: text, out: make([]byte, 0, len(text)), prefix: prefix, paths: paths}
	w.value(of)
	return w.out
}

// redaction is a pass over one text.
type redaction struct {
	*hider
	in     []byte
	at     int
	out    []byte
	prefix string
	steps  []step         // to the value at hand
	paths  *redactedPaths // nil: they are not needed
	hidden bool           // something was replaced
	inside int            // how many texts with JSON in them this one is in
}

// value copies the value at w.at.
func (w *redaction) value(of *schema) {
	w.space()
	switch w.in[w.at] {
	case '{':
		w.object(of)
	case '[':
		w.array(of)
	case '"':
		w.text(of)
	default:
		start := w.at
		w.scalar()
		w.out = append(w.out, w.in[start:w.at]...)
	}
}

func (w *redaction) object(of *schema) {
	w.copyByte() // {
	var p namedValue
	for {
		w.space()
		switch w.in[w.at] {
		case '}':
			w.hideNamed(&p)
			w.copyByte()
			return
		case ',':
			w.copyByte()
			continue
		}
		name := w.key()
		w.steps = append(w.steps, w.step(name))
		from, to := w.at, len(w.out)
		if of.secretField(name) || w.hides(w.steps) {
			w.hide(of.field(name))
		} else {
			w.value(of.field(name))
			p.note(w, name, from, to)
		}
		w.steps = w.steps[:len(w.steps)-1]
		if of != nil && of.packed && name == "@type" && w.packed != nil && w.out[to] == '"' {
			of = w.packed(unquote(w.out[to:]))
		}
	}
}

// key copies a key with its colon, and returns its text.
func (w *redaction) key() string {
	start := w.at
	w.scalar()
	key := w.in[start:w.at]
	w.out = append(w.out, key...)
	w.space()
	w.copyByte() // :
	w.space()
	return unquote(key)
}

func (w *redaction) array(of *schema) {
	w.copyByte() // [
	w.steps = append(w.steps, step{element: true})
	for {
		w.space()
		switch w.in[w.at] {
		case ']':
			w.copyByte()
			w.steps = w.steps[:len(w.steps)-1]
			return
		case ',':
			w.copyByte()
		default:
			w.value(of.element())
		}
	}
}

// namedValue is what an object has if it is the field of another form: {"name": "password",
// "value": "x"}, as lists of headers and attributes are written.
type namedValue struct {
	secret   bool // by the name
	value    bool // there is one, in w.in[from:until], and in w.out[to:end]
	key      string
	from, to int
	until    int
	end      int
}

// note notes a field that was copied.
func (p *namedValue) note(w *redaction, key string, from, to int) {
	switch plainName(key) {
	case "name", "key":
		if w.in[from] == '"' && w.hidesName(unquote(w.in[from:w.at])) {
			p.secret = true
		}
	case "value", "values":
		p.value, p.key, p.from, p.to, p.until, p.end = true, key, from, to, w.at, len(w.out)
	}
}

// hideNamed replaces the value, if the name says that it is secret.
func (w *redaction) hideNamed(p *namedValue) {
	if !p.secret || !p.value {
		return
	}
	in, at, out := w.in, w.at, w.out
	w.in, w.at, w.out = in[:p.until], p.from, nil
	w.steps = append(w.steps, step{name: p.key})
	w.hide(nil)
	w.steps = w.steps[:len(w.steps)-1]
	w.in, w.at, w.out = in, at, slices.Replace(out, p.to, p.end, w.out...)
}

// maxInside is how many texts of JSON are looked into, one in the other.
const maxInside = 4

// text copies a text. If it is JSON, what is secret in it is replaced, or all of it if it is not
// clear what a program would find there.
func (w *redaction) text(of *schema) {
	start := w.at
	w.scalar()
	text := w.in[start:w.at]
	w.out = append(w.out, text...)
	if !slices.Contains(text, '\\') { // JSON with keys has quotes
		return
	}
	plain := strings.TrimSpace(unquote(text))
	if plain == "" || strings.IndexByte(`{["`, plain[0]) < 0 || !json.Valid([]byte(plain)) {
		return
	}
	if w.inside == maxInside || codec.CheckJSON([]byte(plain)) != nil {
		w.out, w.at = w.out[:len(w.out)-len(text)], start
		w.hide(of)
		return
	}
	in := redaction{hider: w.hider, in: []byte(plain), steps: slices.Clone(w.steps), inside: w.inside + 1}
	in.value(nil)
	if !in.hidden {
		return
	}
	quoted, err := json.Marshal(string(in.out))
	if err != nil {
		quoted = []byte(`"redacted"`)
	}
	w.out = append(w.out[:len(w.out)-len(text)], quoted...)
	w.replaced()
}

// replaced notes that the value at hand was replaced.
func (w *redaction) replaced() {
	if w.hidden = true; w.paths != nil {
		w.paths.add(w.prefix, w.steps)
	}
}

// hide replaces the value at w.at, which keeps its type, so that a replayed request can be
// decoded.
func (w *redaction) hide(of *schema) {
	w.space()
	start := w.at
	switch b := w.in[w.at]; {
	case b == '{':
		w.hideObject(of)
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
	w.replaced()
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

// hideObject replaces all values of an object. It keeps the keys that are fields of the type;
// others may be secret themselves, as those of a map from tokens to users.
func (w *redaction) hideObject(of *schema) {
	if of == nil || len(of.fields) == 0 {
		w.skip()
		w.out = append(w.out, "{}"...)
		return
	}
	w.copyByte() // {
	paths := w.paths
	defer func() { w.paths = paths }()
	w.paths = nil // that of the object says it
	first := true
	for {
		w.space()
		switch w.in[w.at] {
		case '}':
			w.copyByte()
			return
		case ',':
			w.at++
			continue
		}
		start := w.at
		w.scalar()
		key := w.in[start:w.at]
		w.space()
		w.at++ // :
		field, known := of.fields[unquote(key)]
		if !known {
			w.skip()
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = append(append(w.out, key...), ':')
		w.hide(field.of)
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
