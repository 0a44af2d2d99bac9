package jsonrpc

import (
	"bytes"
	"encoding/json"

	"github.com/anser-rpc/anser/codec"
)

// finder finds the version, the method and the id of a message that arrives in pieces and is not
// kept.
type finder struct {
	scanner
	name string // of the member whose value follows
	part []byte // a name or value of the object itself, without what is inside of it

	batch               bool
	version, method, id json.RawMessage
}

// maxPart is the length of the longest value that is kept.
const maxPart = 1 << 10

// scan is that of the scanner.
func (f *finder) scan(piece []byte) (n int, done bool) {
	for i, b := range piece {
		text, depth := f.text, f.depth
		_, done := f.scanner.scan(piece[i : i+1])
		switch {
		case depth == 0:
			f.batch = f.batch || b == '['
		case depth > 1 || f.batch:
		case !text && b == ':':
			f.name, f.part = string(f.part), f.part[:0]
		case !text && (b == ',' || done):
			f.take()
		case f.depth == 1 && (text || !isSpace(b)) && len(f.part) <= maxPart:
			f.part = append(f.part, b)
		}
		if done {
			return i + 1, true
		}
	}
	return len(piece), false
}

// take takes the value of a member.
func (f *finder) take() {
	value := bytes.Clone(f.part)
	if len(value) > maxPart || !json.Valid(value) {
		value = nil
	}
	switch f.name {
	case `"jsonrpc"`:
		f.version = value
	case `"method"`:
		f.method = value
	case `"id"`:
		f.id = value
	}
	f.name, f.part = "", f.part[:0]
}

// head returns the message without its params. That of a batch is an empty one.
func (f *finder) head() json.RawMessage {
	if f.batch {
		return json.RawMessage("[]")
	}
	out, err := new(codec.JSON).Append(nil, &struct { // which leaves the values as they came
		Version json.RawMessage `json:"jsonrpc,omitempty"`
		Method  json.RawMessage `json:"method,omitempty"`
		ID      json.RawMessage `json:"id,omitempty"`
	}{f.version, f.method, f.id})
	if err != nil {
		return nil
	}
	return out
}
