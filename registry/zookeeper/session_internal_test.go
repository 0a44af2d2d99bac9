package zookeeper

import (
	"bytes"
	"slices"
	"testing"
)

func TestAnswersHide(t *testing.T) {
	answer := func(body ...byte) []byte { return append([]byte{0, 0, 0, byte(len(body))}, body...) }
	id := func(b byte) []byte { return append([]byte{0, 0, 0, 7}, bytes.Repeat([]byte{b}, 8)...) }
	stream := func(b byte) []byte {
		return slices.Concat(answer(bytes.Repeat([]byte{9}, 40)...), answer(append(id(b), 1, 2, 3, 4, 5)...),
			answer(id(b)...), answer(), answer(id(b)[:6]...), answer(append(id(b), 6)...))
	}
	want := stream(0)
	for size := 1; size <= len(want); size++ {
		var a answers
		got := stream(0xff)
		for piece := range slices.Chunk(got, size) {
			a.hide(piece)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("in pieces of %d bytes:\n%x, want\n%x", size, got, want)
		}
	}
}
