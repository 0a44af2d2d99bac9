package main

import (
	"encoding/binary"
	"fmt"
	"io"
)

const headerSize = 16 // length u32, method u32, call id u64

const (
	methodSay = iota
	methodAdd
)

// maxFrame is more than anybody here sends. A broken length must not take all memory.
const maxFrame = 16 << 20

// frames calls f for every whole frame in buf[r:w] and returns the new r.
func frames(buf []byte, r, w int, f func(header, body []byte) error) (int, error) {
	for w-r >= headerSize {
		end := r + headerSize + int(binary.LittleEndian.Uint32(buf[r:]))
		if end > w {
			break
		}
		if err := f(buf[r:r+headerSize], buf[r+headerSize:end]); err != nil {
			return r, err
		}
		r = end
	}
	return r, nil
}

// readFrames fills a buffer and hands out its frames; idle runs before each read.
func readFrames(c io.Reader, f func(header, body []byte) error, idle func() error) error {
	buf := make([]byte, 64<<10)
	r, w := 0, 0
	for {
		var err error
		if r, err = frames(buf, r, w, f); err != nil {
			return err
		}
		if err := idle(); err != nil {
			return err
		}
		next := buf[r:w]
		if r == 0 && w == len(buf) { // a frame that does not fit
			size := headerSize + int(binary.LittleEndian.Uint32(buf))
			if size > maxFrame {
				return fmt.Errorf("a frame of %d bytes: %d are the most", size, maxFrame)
			}
			buf = make([]byte, size+64<<10)
		}
		w = copy(buf, next)
		r = 0
		n, err := c.Read(buf[w:])
		if err != nil {
			return err
		}
		w += n
	}
}
