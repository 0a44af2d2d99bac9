package jsonrpc

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// script is a connection whose input arrives byte by byte.
type script struct{ io.Reader }

func (script) Write(p []byte) (int, error) { return len(p), nil }
func (script) Close() error                { return nil }

// A stream ends messages at the same positions as encoding/json.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		`{"method":"Arith.Add","params":[{"A":1,"B":2}],"id":1}`, `{"id":"}"} {"id":"\""}`, "[]\n[{}]", `{"a":"\\"}{}`, `{"a":"\\\"]"}`, `[1,[2,{"b":[]}]]`, `{]`, `"x"`, `  {`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		s := newStream(script{iotest.OneByteReader(strings.NewReader(sent))}, "X")
		for dec := json.NewDecoder(strings.NewReader(sent)); ; {
			var want json.RawMessage
			if dec.Decode(&want) != nil {
				return // invalid JSON is detected when it is decoded
			}
			got, err := s.next()
			if want[0] != '{' && want[0] != '[' {
				if err == nil {
					t.Errorf("%q is taken for a message", got)
				}
				return
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
		}
	})
}

func TestStreamLimit(t *testing.T) {
	const limit = 100
	for size, fits := range map[int]bool{limit: true, limit + 1: false} {
		s := newStream(script{strings.NewReader(`["` + strings.Repeat("x", size-4) + `"]`)}, "Server.Limit")
		s.conn.SetMaxMessage(limit)
		if got, err := s.next(); fits != (err == nil) || fits && len(got) != size {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		} else if !fits && !strings.Contains(err.Error(), "limit of 100 bytes: send less, or raise Server.Limit") {
			t.Errorf("%v, want it to say what to do", err)
		}
	}
}

// The end of a stream is valid only between messages.
func TestStreamEnds(t *testing.T) {
	for sent, want := range map[string]error{"": io.EOF, " \n": io.EOF, "{": io.ErrUnexpectedEOF, `["x`: io.ErrUnexpectedEOF} {
		s := newStream(script{strings.NewReader(sent)}, "X")
		if _, err := s.next(); err != want {
			t.Errorf("%q: %v, want %v", sent, err, want)
		}
	}
}
