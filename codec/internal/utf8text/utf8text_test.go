package utf8text_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/anser-rpc/anser/codec/internal/utf8text"
)

// Text of all lengths with something else than ASCII at each place is judged as by the standard
// library.
func TestValid(t *testing.T) {
	for _, part := range []string{"", "é", "变", "😀", "\x80", "\xff", "\xc3", "\xe5\x8f", "\xed\xa0\x80", "\x00", "\x7f"} {
		for length := range 300 {
			for at := range length + 1 {
				text := bytes.Repeat([]byte("x"), length)
				copy(text[at:], part) // the end may be cut
				if got, want := utf8text.Valid(text), utf8.Valid(text); got != want {
					t.Fatalf("%q at %d of %d bytes: %v, want %v", part, at, length, got, want)
				}
			}
		}
	}
	if !utf8text.ValidString(strings.Repeat("x", 1000)+"é") || utf8text.ValidString(strings.Repeat("x", 1000)+"\xff") || !utf8text.ValidString("") {
		t.Error("a string is judged wrongly")
	}
}

func BenchmarkValid(b *testing.B) {
	text := bytes.Repeat([]byte("x"), 64<<10)
	for name, valid := range map[string]func([]byte) bool{"blocks": utf8text.Valid, "standard": utf8.Valid} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !valid(text) {
					b.Fatal("it is valid")
				}
			}
		})
	}
}
