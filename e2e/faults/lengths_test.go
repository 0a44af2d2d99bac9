package main

import (
	"encoding/binary"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// Frames are followed in pieces of any size, and what comes after a lie is not taken for a header.
func TestLengths(t *testing.T) {
	var stream []byte
	var at []int // of headers
	stream = wire.AppendPreface(stream)
	for n := range 20 {
		at = append(at, len(stream))
		stream = wire.AppendHeader(stream, wire.Header{Length: uint32(3 * n), Type: wire.TypeReply, ID: 1})
		stream = append(stream, make([]byte, 3*n)...)
	}
	for size := 1; size <= len(stream); size++ {
		data := append([]byte(nil), stream...)
		var l lengths
		lies := int64(0)
		for rest := data; len(rest) > 0; {
			n := min(size, len(rest))
			lies += l.pass(rest[:n], 1)
			rest = rest[n:]
		}
		changed, others := int64(0), 0
		for i, b := range data {
			if b != stream[i] {
				others++
			}
		}
		for n, i := range at {
			if got := binary.LittleEndian.Uint32(data[i:]); got != uint32(3*n) {
				changed++
			}
			for k := range 4 {
				if data[i+k] != stream[i+k] {
					others--
				}
			}
		}
		if changed > lies || others != 0 || size == len(stream) && lies == 0 {
			t.Fatalf("in pieces of %d bytes: %d lies, %d lengths and %d other bytes differ", size, lies, changed, others)
		}
	}
	if lies := new(lengths).pass(stream, 0); lies != 0 {
		t.Errorf("%d lies without an order", lies)
	}
}
