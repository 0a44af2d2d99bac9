package main

import (
	"encoding/binary"
	"math"

	"github.com/anser-rpc/anser/wire"
)

// lengths follows the frames that one side of a connection sends, and can change the lengths that
// they claim. After that it follows what was claimed no more, but what is there.
type lengths struct {
	header []byte // of the next frame, as far as it has come
	skip   int    // bytes until then
	begun  bool   // the preface has been passed
	left   int    // frames until the next lie
	told   int
}

// pass looks at the next bytes. It changes the length of one frame of mean on average, if mean is
// not 0, and returns how many it has changed. A header that comes in two pieces keeps its length.
func (l *lengths) pass(data []byte, mean int) (lies int64) {
	if !l.begun {
		l.begun, l.skip = true, wire.PrefaceSize
	}
	for at := 0; at < len(data); {
		if l.skip > 0 {
			n := min(l.skip, len(data)-at)
			l.skip -= n
			at += n
			continue
		}
		n := min(wire.HeaderSize-len(l.header), len(data)-at)
		whole := n == wire.HeaderSize
		l.header = append(l.header, data[at:at+n]...)
		at += n
		if len(l.header) < wire.HeaderSize {
			break
		}
		length := binary.LittleEndian.Uint32(l.header)
		l.skip, l.header = int(length), l.header[:0]
		if whole && due(&l.left, mean, 1) >= 0 {
			wire.PutLength(data[at-wire.HeaderSize:], l.lie(length))
			lies++
		}
	}
	return lies
}

// lie returns another length than the true one: too large, too small, and impossible, in turns.
func (l *lengths) lie(length uint32) uint32 {
	l.told++
	switch l.told % 5 {
	case 0:
		return math.MaxUint32
	case 1:
		return length + 1
	case 2:
		return length - min(length, 1)
	case 3:
		return length + 1<<20
	default:
		return 0
	}
}
