package bufpool

import (
	"math/bits"
	"sync"
)

// Buffers of frames have sizes in steps of an eighth of a power of two, from half of Size. Each
// takes one frame, and may be kept as long as its message, so little of it should be unused.
const (
	smallestFrame = Size / 2
	frameSteps    = 8 // sizes between two powers of two
	frameClasses  = frameSteps * 12
	largestFrame  = smallestFrame << (frameClasses / frameSteps) // beyond it buffers are not kept
)

var frames [frameClasses + 1]sync.Pool // of *[]byte

// frameClass returns the smallest class of buffers of at least n bytes, and their size.
func frameClass(n int) (class, size int) {
	if n <= smallestFrame {
		return 0, smallestFrame
	}
	power := bits.Len(uint(n-1)) - 1 // n-1 is at least this power of two
	step := 1 << power / frameSteps
	steps := (n - 1 - 1<<power) / step
	return (power-bits.Len(uint(smallestFrame))+1)*frameSteps + steps + 1, 1<<power + (steps+1)*step
}

// FrameSize returns the length of the buffer that GetFrame returns for n bytes.
func FrameSize(n int) int {
	_, size := frameClass(n)
	return size
}

// GetFrame returns a buffer for a frame of n bytes, at most an eighth longer. Its content is
// arbitrary.
func GetFrame(n int) []byte {
	class, size := frameClass(n)
	if class < len(frames) {
		if b, ok := frames[class].Get().(*[]byte); ok {
			return *b
		}
	}
	return make([]byte, size)
}

// PutFrame gives a buffer of GetFrame back, also one that was cut at its end. Nothing may alias it
// any more. A buffer of another size is left to the garbage collector.
func PutFrame(b []byte) {
	b = b[:cap(b)]
	if len(b) < smallestFrame {
		return
	}
	if class, size := frameClass(len(b)); size == len(b) && class < len(frames) {
		putFrame(class, b)
	}
}

// putFrame is a function of its own because it allocates, for the pointer to b. PutFrame does not.
func putFrame(class int, b []byte) { frames[class].Put(&b) }
