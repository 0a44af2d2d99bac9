package codec

import (
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	errEscape    = errors.New("JSON has a broken escape")
	errSurrogate = errors.New("JSON has an escape of half a surrogate pair")
)

// escapeLen returns the length of the escape at the beginning of b, including both halves of a
// pair.
func escapeLen(b []byte) (int, error) {
	if len(b) < 2 {
		return 0, errEscape
	}
	if b[1] != 'u' {
		return 2, nil
	}
	r, ok := hex4(b)
	if !ok {
		return 0, errEscape
	}
	if !utf16.IsSurrogate(r) {
		return 6, nil
	}
	low, ok := hex4(b[6:])
	if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
		return 0, errSurrogate
	}
	return 12, nil
}

// hex4 returns the value of the \uXXXX at the beginning of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, d := range b[2:6] {
		switch {
		case '0' <= d && d <= '9':
			r = r<<4 | rune(d-'0')
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			r = r<<4 | rune(d|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// appendPlain appends b, whose escapes escapeLen has accepted, unescaped.
func appendPlain(out, b []byte) []byte {
	for len(b) > 0 {
		if b[0] != '\\' {
			out, b = append(out, b[0]), b[1:]
			continue
		}
		r, ok := hex4(b)
		switch {
		case !ok:
			out, b = append(out, short(b[1])), b[2:]
		case utf16.IsSurrogate(r):
			low, _ := hex4(b[6:])
			out, b = utf8.AppendRune(out, utf16.DecodeRune(r, low)), b[12:]
		default:
			out, b = utf8.AppendRune(out, r), b[6:]
		}
	}
	return out
}

// short returns the value of a one-character escape.
func short(b byte) byte {
	switch b {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return b
}
