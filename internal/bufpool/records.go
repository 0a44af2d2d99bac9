package bufpool

import "encoding/binary"

// Records holds what has arrived for a stream, in chunks of whole records. A record is a byte of
// flags, four bytes with the length of a payload, and the payload. What Records allocates grows
// with what has arrived. The zero value is empty. Not safe for concurrent use.
//
// Large chunks come from the pool, and alternate between Records and its reader while messages
// flow: a pool is emptied by the garbage collector, which runs often where the messages themselves
// are garbage.
type Records struct {
	list [][]byte // all but the last one are full
	free [][]byte // empty ones
	idle bool     // nothing has arrived since the last Trim
}

const (
	recordHead = 5
	firstChunk = 1 << 10  // size of the first chunk
	smallChunk = Size / 4 // larger ones are Size, or one record
)

// Append copies a record. The meaning of the flags is the caller's.
func (r *Records) Append(payload []byte, flags byte) {
	r.idle = false
	need := recordHead + len(payload)
	last := len(r.list) - 1
	if last < 0 || len(r.list[last])+need > cap(r.list[last]) {
		last = r.grow(need)
	}
	chunk := binary.LittleEndian.AppendUint32(append(r.list[last], flags), uint32(len(payload)))
	r.list[last] = append(chunk, payload...)
}

// Cut cuts the first record off a chunk that Take returned. The payload aliases the chunk.
func Cut(chunk *[]byte) (payload []byte, flags byte) {
	flags = (*chunk)[0]
	end := recordHead + int(binary.LittleEndian.Uint32((*chunk)[1:]))
	payload = (*chunk)[recordHead:end:end]
	*chunk = (*chunk)[end:]
	return payload, flags
}

// grow makes room for need bytes in the last chunk and returns its index: it replaces a small chunk
// by a larger one, and adds one after a large chunk.
func (r *Records) grow(need int) (last int) {
	var old []byte
	if last = len(r.list) - 1; last >= 0 && cap(r.list[last]) <= smallChunk {
		old = r.list[last]
		need += len(old)
	} else {
		r.list = append(r.list, nil)
		last++
	}
	r.list[last] = append(r.empty(max(2*cap(old), need, firstChunk)), old...)
	return last
}

// empty returns an empty chunk of at least the size.
func (r *Records) empty(size int) []byte {
	if n := len(r.free) - 1; n >= 0 && cap(r.free[n]) >= size {
		chunk := r.free[n]
		r.free[n] = nil
		r.free = r.free[:n]
		return chunk
	}
	if size <= smallChunk || size > Size {
		return make([]byte, 0, size)
	}
	return Get(Size)[:0]
}

// Empty reports whether there are no records.
func (r *Records) Empty() bool { return len(r.list) == 0 }

// Take removes and returns the chunks that hold the records, in exchange for used ones, the result
// of an earlier Take or nil, whose records are not needed any more.
func (r *Records) Take(used [][]byte) [][]byte {
	for i, chunk := range used {
		if cap(chunk) <= Size {
			r.free = append(r.free, chunk[:0])
		}
		used[i] = nil
	}
	list := r.list
	r.list = used[:0]
	return list
}

// Trim gives the empty chunks of a stream on which nothing arrives back to the pool. It reports
// whether there are some left to give back in a second.
func (r *Records) Trim() (again bool) {
	if r.idle {
		for _, chunk := range r.free {
			Put(chunk)
		}
		r.free = nil
	}
	r.idle = true
	return len(r.free) > 0
}
