package filetransfer

import "sync"

const (
	// block is how much is read from and written to a file at once.
	block = 256 << 10
	// piece is how much travels in one message: what fits in one frame of a stream, so that it is not put together
	// from several.
	piece = 16 << 10
	// widening is how much more than the window of a stream may be on its way to whoever writes the file. Measured
	// with e2e/files: with the window of 256 KiB alone a transfer reaches 0.7 of a bare copy, with 512 KiB 0.85, and not more
	// with 1 MiB; but then a call beside it waits longer.
	widening = 256 << 10
)

var buffers = sync.Pool{New: func() any { b := make([]byte, block); return &b }}

func takeBuffer() *[]byte  { return buffers.Get().(*[]byte) }
func giveBuffer(b *[]byte) { buffers.Put(b) }
