package file

import "sync"

const (
	// block is how much is read from and written to a file at once.
	block = 256 << 10
	// piece is how much travels in one message: what fits in one frame of a stream, so that it is not put together
	// from several.
	piece = 16 << 10
)

var buffers = sync.Pool{New: func() any { b := make([]byte, block); return &b }}

func takeBuffer() *[]byte  { return buffers.Get().(*[]byte) }
func giveBuffer(b *[]byte) { buffers.Put(b) }
