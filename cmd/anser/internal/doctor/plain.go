package doctor

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longest is the maximum number of characters of a text that may come from the network.
const longest = 400

// plain returns the text in one line that a terminal shows as it is: escape sequences, other
// control characters, marks that change the direction of writing and invalid bytes are written as
// in Go. A long text is cut.
func plain(text string) string {
	var b strings.Builder
	count := 0
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case count == longest:
			b.WriteString("…")
			return b.String()
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		text = text[n:]
		count++
	}
	return b.String()
}
