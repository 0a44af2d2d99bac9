package codec

import (
	"bytes"
	"testing"
)

// AppendInPieces has the same result as append, whatever the capacity is, and the slices do not
// share memory.
func TestAppendInPieces(t *testing.T) {
	src := make([]byte, 3*pieceBytes+5)
	for i := range src {
		src[i] = byte(i * 7 >> 3)
	}
	before := []byte("what was there before")
	for _, n := range []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes, len(src)} {
		for _, room := range []int{0, 1, n - 1, n, n + 1, 4 * n} {
			dst := append(make([]byte, 0, len(before)+max(room, 0)), before...)
			want := append(bytes.Clone(before), src[:n]...)
			got := AppendInPieces(dst, src[:n])
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes with room for %d came out wrong", n, room)
			}
			if string(dst) != string(before) {
				t.Errorf("%d bytes with room for %d damaged what was there", n, room)
			}
			if room >= n && &got[0] != &dst[0] {
				t.Errorf("%d bytes moved the slice, which has room for %d", n, room)
			}
		}
	}
	if got := AppendInPieces(nil, src); !bytes.Equal(got, src) || &got[0] == &src[0] {
		t.Error("appended to nothing, they are not a copy")
	}
}

// A buffer to which many large slices are appended grows in proportion to its size, not by one
// slice at a time.
func TestAppendInPiecesGrows(t *testing.T) {
	const times = 200
	src := make([]byte, pieceBytes+1)
	var b []byte
	moves := 0
	for range times {
		before := cap(b)
		if b = AppendInPieces(b, src); cap(b) != before {
			moves++
		}
	}
	if len(b) != times*len(src) || moves > times/4 {
		t.Errorf("%d bytes after %d moves: want %d, and far fewer moves than the %d times", len(b), moves, times*len(src), times)
	}
}
