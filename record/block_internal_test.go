package record

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	bytes int
}

func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, at)
	c.bytes += n
	return n, err
}

// A file that is full of beginnings of blocks with long heads is not read once for each of them.
func TestFalseBlocks(t *testing.T) {
	var frame [16]byte
	copy(frame[:], blockMagic)
	binary.LittleEndian.PutUint32(frame[4:], maxHead)
	text := bytes.Repeat(frame[:], 1<<16) // 1 MiB
	in := &counted{ReaderAt: bytes.NewReader(text)}
	size := int64(len(text))
	budget := maxLooks*size + maxHead
	for at := int64(0); at >= 0; {
		var err error
		if at, err = findBlock(in, at+1, size, &budget); err != nil {
			t.Fatal(err)
		}
	}
	if in.bytes > 2*maxLooks*len(text) {
		t.Errorf("%d bytes were read of %d", in.bytes, len(text))
	}
}
