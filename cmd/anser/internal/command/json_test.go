package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// JSON that is printed keeps its meaning, and has nothing that controls a terminal.
func TestPrintedJSON(t *testing.T) {
	const evil = "a\u009b31m\u202e\x1b[2J\x7f"
	for name, print := range map[string]func(*bytes.Buffer) error{
		"object": func(b *bytes.Buffer) error { return printJSON(b, map[string]string{"text": evil}) },
		"line":   func(b *bytes.Buffer) error { return printJSONLine(b, map[string]string{"text": evil}) },
		"reply": func(b *bytes.Buffer) error {
			b.WriteString(indentJSON([]byte("{\"text\":\"a\u009b31m\u202e\\u001b[2J\x7f\"}")))
			return nil
		},
	} {
		var b bytes.Buffer
		if err := print(&b); err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["text"] != evil {
			t.Errorf("%s: %q, %v", name, back, err)
		}
		if strings.ContainsAny(b.String(), "\u009b\u202e\x1b\x7f") {
			t.Errorf("%s controls a terminal: %q", name, b.String())
		}
	}
}

// An error keeps its lines, and has nothing else that controls a terminal.
func TestErrorText(t *testing.T) {
	got := errorText(errors.New("first\r\n\tsecond \x1b]0;owned\x07\u009b\u202e"))
	if want := "first?\n\tsecond ?]0;owned???"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
