// Package printable makes texts that others have chosen safe for terminals and readers.
package printable

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns a text in which a question mark replaces each rune that controls a terminal, that
// changes the direction of writing or that is invisible, and each invalid byte.
func Text(s string) string {
	if plain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if !shown(r) {
			return '?'
		}
		return r
	}, s)
}

// Short is Text of at most n runes; a longer text ends with an ellipsis.
func Short(s string, n int) string {
	if len(s) <= n && plain(s) {
		return s
	}
	count := 0
	for i := range s {
		if count++; count > n {
			return Text(s[:i]) + "…"
		}
	}
	return Text(s)
}

// plain reports whether a text has printable ASCII characters alone, which are most texts.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// JSON returns the same JSON with escapes for these runes, so that a terminal can print it. The
// result may share its memory with text.
func JSON(text []byte) []byte {
	var out []byte
	from := 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf && text[i] != 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if !shown(r) {
			out = append(out, text[from:i]...)
			if r > 0xffff {
				high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
				out = appendEscape(appendEscape(out, high), low)
			} else {
				out = appendEscape(out, r)
			}
			from = i + n
		}
		i += n
	}
	if from == 0 {
		return text
	}
	return append(out, text[from:]...)
}

func appendEscape(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// shown reports whether a terminal shows the rune as a character.
func shown(r rune) bool { return r != utf8.RuneError && strconv.IsGraphic(r) }
