// Package bufpool reuses the buffers in which connections read and streams keep what has arrived.
package bufpool

import (
	"math/bits"
	"sync"
)

// Size is the number of bytes of the smallest buffer that is pooled.
const Size = 64 << 10

var small = sync.Pool{New: func() any { return new([Size]byte) }}

// large holds buffers of 2, 4, 8, … times Size bytes, up to 64 MiB. A connection with large
// messages takes them in turn while a message arrives, and a stream while it puts one together, so
// that neither need keep the largest one.
var large [10]sync.Pool // of *[]byte

// Get returns a buffer of n bytes, Size or Size times a power of two. Its content is arbitrary.
func Get(n int) []byte {
	if n == Size {
		return small.Get().(*[Size]byte)[:]
	}
	if class := bits.Len(uint(n/Size)) - 2; class < len(large) {
		if b, ok := large[class].Get().(*[]byte); ok {
			return *b
		}
	}
	return make([]byte, n)
}

// Put gives a buffer back, of any length. Nothing may alias it any more. A buffer with a capacity
// that Get does not return is left to the garbage collector.
func Put(b []byte) {
	b = b[:cap(b)]
	if len(b) == Size {
		small.Put((*[Size]byte)(b))
		return
	}
	class := bits.Len(uint(len(b)/Size)) - 2
	if class >= 0 && class < len(large) && len(b) == Size<<(class+1) {
		putLarge(class, b)
	}
}

// putLarge allocates, for the pointer to b, which Put does not.
func putLarge(class int, b []byte) { large[class].Put(&b) }
