package anser

import "encoding/binary"

// chunkList holds what has arrived for a stream, in chunks of whole records. A record is a byte of recordFlags, four
// bytes with the length of a payload, and the payload. What an inbox allocates grows with what has arrived. Not
// safe for concurrent use.
//
// Large chunks come from a pool, and go round between inbox and reader while messages flow: a pool is emptied by
// the garbage collector, which runs often where the messages themselves are garbage.
type chunkList struct {
	list [][]byte // all but the last one are full
	free [][]byte // empty ones
	idle bool     // nothing has arrived since the last trim
}

// recordFlags say what the payload of a record is.
type recordFlags byte

const (
	recordMore   recordFlags = 1 << iota // its message goes on in the next record
	recordPacked                         // its message is compressed
)

const (
	recordHead = 5
	firstChunk = 1 << 10        // size of the first chunk of a stream
	smallChunk = loadBuffer / 4 // larger ones are loadBuffer, or one record
)

// add appends a record.
func (b *chunkList) add(payload []byte, flags recordFlags) {
	b.idle = false
	need := recordHead + len(payload)
	last := len(b.list) - 1
	if last < 0 || len(b.list[last])+need > cap(b.list[last]) {
		last = b.grow(need)
	}
	chunk := binary.LittleEndian.AppendUint32(append(b.list[last], byte(flags)), uint32(len(payload)))
	b.list[last] = append(chunk, payload...)
}

// nextRecord cuts the first record off the chunk.
func nextRecord(chunk *[]byte) (payload []byte, flags recordFlags) {
	flags = recordFlags((*chunk)[0])
	end := recordHead + int(binary.LittleEndian.Uint32((*chunk)[1:]))
	payload = (*chunk)[recordHead:end:end]
	*chunk = (*chunk)[end:]
	return payload, flags
}

// grow makes room for need bytes in the last chunk and returns its index: it puts a larger chunk in the place of
// a small one, and behind a large one.
func (b *chunkList) grow(need int) (last int) {
	var old []byte
	if last = len(b.list) - 1; last >= 0 && cap(b.list[last]) <= smallChunk {
		old = b.list[last]
		need += len(old)
	} else {
		b.list = append(b.list, nil)
		last++
	}
	b.list[last] = append(b.empty(max(2*cap(old), need, firstChunk)), old...)
	return last
}

// empty returns an empty chunk of at least the size.
func (b *chunkList) empty(size int) []byte {
	if n := len(b.free) - 1; n >= 0 && cap(b.free[n]) >= size {
		chunk := b.free[n]
		b.free[n] = nil
		b.free = b.free[:n]
		return chunk
	}
	if size <= smallChunk || size > loadBuffer {
		return make([]byte, 0, size)
	}
	return loadBuffers.Get().(*[loadBuffer]byte)[:0]
}

// take returns the chunks that have arrived for used ones, whose records are not needed any more.
func (b *chunkList) take(used [][]byte) [][]byte {
	for i, chunk := range used {
		if cap(chunk) <= loadBuffer {
			b.free = append(b.free, chunk[:0])
		}
		used[i] = nil
	}
	list := b.list
	b.list = used[:0]
	return list
}

// trim drops the empty chunks of a stream on which nothing arrives; called about every second.
func (b *chunkList) trim() {
	if b.idle {
		for _, chunk := range b.free {
			putBuffer(chunk)
		}
		b.free = nil
	}
	b.idle = true
}
