package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// What the finder keeps of a message is what encoding/json finds in it, in whatever pieces it
// arrives.
func FuzzFinder(f *testing.F) {
	for _, seed := range []string{
		`{"method":"Arith.Add","params":[{"A":1,"id":2}],"id":1}`, `{"id":"}","jsonrpc":"2.0"}`, `{"id":[1],"id":"a\"b"}`, `{"params":{"id":7},"id": null , "method":"x:y"}`,
		`[{"id":1}]`, `{}`, `{"":"id","id":-1.5e3}`, `{"id":{"id":3}}`,
	} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, message string, size int) {
		message = strings.TrimSpace(message)
		if !json.Valid([]byte(message)) || message[0] != '{' && message[0] != '[' || len(message) > maxPart {
			return
		}
		var of finder
		size = min(max(size, 1), len(message))
		for rest := message; rest != ""; {
			n := min(size, len(rest))
			if used, done := of.scan([]byte(rest[:n])); done != (n == len(rest)) || used != n {
				t.Fatalf("of %q, %d bytes are used, done: %v", rest[:n], used, done)
			}
			rest = rest[n:]
		}
		head := of.head()
		if message[0] == '[' {
			if string(head) != "[]" {
				t.Errorf("the head of a batch is %s", head)
			}
			return
		}
		var got, want map[string]json.RawMessage
		if err := json.Unmarshal(head, &got); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(message, `\`) || json.Unmarshal([]byte(message), &want) != nil {
			return // names with escapes are not found
		}
		for _, name := range []string{"jsonrpc", "method", "id"} {
			value := want[name]
			if len(value) > 0 && (value[0] == '{' || value[0] == '[') {
				value = nil // the insides are not kept
			}
			if !bytes.Equal(got[name], value) {
				t.Errorf("%s of %s is %s", name, message, got[name])
			}
		}
	})
}
