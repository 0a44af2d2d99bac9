package filetransfer

import "sync"

const (
	// block is the number of bytes per read from and write to a file.
	block = 256 << 10
	// piece is the number of bytes per message: they fit into one frame of a stream, so a message
	// need not be assembled.
	piece = 16 << 10
	// widening is the number of bytes, in addition to the window of a stream, that may be in
	// flight to the side that writes the file. Measured with e2e/files: with the window of 256 KiB
	// alone a transfer reaches 0.7 of the throughput of a bare copy, with 512 KiB 0.85, and not
	// more with 1 MiB; but then a concurrent call waits longer.
	widening = 256 << 10
)

var buffers = sync.Pool{New: func() any { b := make([]byte, block); return &b }}

func takeBuffer() *[]byte  { return buffers.Get().(*[]byte) }
func giveBuffer(b *[]byte) { buffers.Put(b) }
