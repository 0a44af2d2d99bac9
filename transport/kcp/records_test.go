package kcp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// decode is a simple implementation of reader.
func decode(b []byte) (content []byte, ended bool) {
	for len(b) >= 2 {
		n := int(binary.LittleEndian.Uint16(b))
		b = b[2:]
		if n == 0 {
			return content, true
		}
		n = min(n, len(b))
		content, b = append(content, b[:n]...), b[n:]
	}
	return content, false
}

func FuzzRecords(f *testing.F) {
	for _, seed := range []string{"", "\x01", "\x00\x00", "\x01\x00a\x00\x00", "\x02\x00ab\x03\x00cde", "\xff\xffabc", "\x00\x00more", "\x03\x00abc\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want, ended := decode(b)
		got, err := io.ReadAll(&reader{r: bufio.NewReader(bytes.NewReader(b))})
		if !bytes.Equal(got, want) || (err == nil) != ended {
			t.Errorf("%q, %v; want %q, at its end: %t", got, err, want, ended)
		}
	})
}
