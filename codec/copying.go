package codec

// pieceBytes is how much is copied at once. Nothing interrupts a copy, and into new memory one of 16 MiB takes 10 ms
// and more. A garbage collection that meets it stops everything until it is over, or waits for it on a
// processor that it keeps, and sends signals meanwhile that slow it down (golang.org/issue/40229). With two
// processors nothing else ran for 120 ms then, not the goroutine that reads the connection either.
const pieceBytes = 64 << 10

// AppendInPieces is append for a src that may be many MiB: other goroutines get their turn in between. It is for codecs
// whose messages have such fields.
func AppendInPieces(dst, src []byte) []byte {
	if len(src) <= pieceBytes {
		return append(dst, src...)
	}
	return appendLarge(dst, src)
}

func appendLarge(dst, src []byte) []byte {
	n := len(dst)
	if need := n + len(src); need > cap(dst) {
		larger := make([]byte, n, max(need, cap(dst)+cap(dst)/4)) // as append does, but this is cleared in pieces
		CopyInPieces(larger, dst)
		dst = larger
	}
	dst = dst[:n+len(src)]
	CopyInPieces(dst[n:], src)
	return dst
}

// CopyInPieces copies src to dst, which is as long or longer, as [AppendInPieces] does.
func CopyInPieces(dst, src []byte) {
	for len(src) > 0 {
		n := copyPiece(dst, src[:min(len(src), pieceBytes)])
		dst, src = dst[n:], src[n:]
	}
}

// copyPiece is not inlined because a goroutine can be interrupted where a function begins.
//
//go:noinline
func copyPiece(dst, src []byte) int { return copy(dst, src) }
