package printable_test

import (
	"encoding/json"
	"testing"

	"github.com/anser-rpc/anser/internal/printable"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"Arith.Mul, ä 漢 😀 a\u0301":         "Arith.Mul, ä 漢 😀 a\u0301",
		"\x1b]0;t\x07\n":                   "?]0;t??",
		"\u009b2J\x7f":                     "?2J?",
		"a\u202eb\u2066c\u200bd\ufeff":     "a?b?c?d?",
		"\u061c\u00ad\u2060\U000e0041\xff": "?????",
	} {
		if got := printable.Text(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{"": "", "äöü": "äöü", "äöüß": "äöü…", "a\x1bbc": "a?b…"} {
		if got := printable.Short(text, 3); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// JSON keeps its meaning, and has no rune that a terminal does not show.
func TestJSON(t *testing.T) {
	const evil = "ä\u009b2J\u202e\x7f\u2028\U000e0041😀"
	text, err := json.Marshal(map[string]string{"a": evil})
	if err != nil {
		t.Fatal(err)
	}
	safe := printable.JSON(text)
	var back map[string]string
	if err := json.Unmarshal(safe, &back); err != nil || back["a"] != evil {
		t.Errorf("%s: %q, %v", safe, back["a"], err)
	}
	if got := printable.Text(string(safe)); got != string(safe) {
		t.Errorf("%s has what controls a terminal", safe)
	}
	if plain := []byte("{\"a\": \"ä\"}"); &printable.JSON(plain)[0] != &plain[0] {
		t.Error("plain JSON was copied")
	}
}
