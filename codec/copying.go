package codec

import (
	"strings"
	"unsafe"
)

// pieceBytes is how many bytes are copied at a time. A copy cannot be preempted, and a copy of 16
// MiB into new memory takes 10 ms or more. If a garbage collection begins meanwhile, it stops all
// goroutines until the copy ends, or waits for it while it occupies a processor, and sends signals
// that slow it down (golang.org/issue/40229). With two processors all other goroutines were then
// blocked for 120 ms, including the one that reads the connection.
const pieceBytes = 64 << 10

// AppendInPieces is append for a src of many MiB: other goroutines can run in between. It is for
// codecs whose messages have such fields.
func AppendInPieces(dst, src []byte) []byte {
	if len(src) <= pieceBytes {
		return append(dst, src...)
	}
	return appendLarge(dst, src)
}

func appendLarge(dst, src []byte) []byte {
	n := len(dst)
	if need := n + len(src); need > cap(dst) {
		larger := unclear(max(need, cap(dst)+cap(dst)/4)) // the capacity grows as in append
		CopyInPieces(larger, dst)
		for rest := larger[need:]; len(rest) > 0; {
			rest = rest[clearPiece(rest[:min(len(rest), pieceBytes)]):]
		}
		dst = larger
	}
	dst = dst[:n+len(src)]
	CopyInPieces(dst[n:], src)
	return dst
}

// CopyInPieces copies src to dst, which must be at least as long, in the way of [AppendInPieces].
func CopyInPieces(dst, src []byte) {
	for len(src) > 0 {
		n := copyPiece(dst, src[:min(len(src), pieceBytes)])
		dst, src = dst[n:], src[n:]
	}
}

// unclear returns n bytes, at least one, that need not be zero: clearing what is about to be
// overwritten takes as long as copying it. strings.Builder is the only allocation in the standard
// library that neither clears nor copies.
func unclear(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// clearPiece is not inlined for the reason of copyPiece.
//
//go:noinline
func clearPiece(b []byte) int {
	clear(b)
	return len(b)
}

// copyPiece is not inlined because a goroutine can be preempted at the beginning of a function.
//
//go:noinline
func copyPiece(dst, src []byte) int { return copy(dst, src) }
