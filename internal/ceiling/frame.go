//go:build unix

package main

import (
	"encoding/binary"
	"io"
)

const headerSize = 16 // length u32, unused u32, call id u64

// frames calls f for every whole frame in buf[r:w] and returns the new r.
func frames(buf []byte, r, w int, f func(header, body []byte)) int {
	for w-r >= headerSize {
		end := r + headerSize + int(binary.LittleEndian.Uint32(buf[r:]))
		if end > w {
			break
		}
		f(buf[r:r+headerSize], buf[r+headerSize:end])
		r = end
	}
	return r
}

// readFrames fills a buffer and hands out its frames; idle runs before each read.
func readFrames(c io.Reader, f func(header, body []byte), idle func() error) {
	buf := make([]byte, 64<<10)
	r, w := 0, 0
	for {
		r = frames(buf, r, w, f)
		if err := idle(); err != nil {
			return
		}
		w = copy(buf, buf[r:w])
		r = 0
		n, err := c.Read(buf[w:])
		if err != nil {
			return
		}
		w += n
	}
}
