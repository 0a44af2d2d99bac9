package pbrt

import (
	"math"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bad is the position that functions return for invalid bytes. It is so small that it stays
// negative when lengths are added to it.
const Bad = math.MinInt / 2

// Varint reads a varint at b[i:]. It returns the position behind it, or Bad.
func Varint(b []byte, i int) (uint64, int) {
	if uint(i)+8 < uint(len(b)) {
		p := b[i : i+8 : i+8]
		x := uint64(p[0])
		if x < 1<<7 {
			return x, i + 1
		}
		x += uint64(p[1])<<7 - 1<<7
		if x < 1<<14 {
			return x, i + 2
		}
		x += uint64(p[2])<<14 - 1<<14
		if x < 1<<21 {
			return x, i + 3
		}
		x += uint64(p[3])<<21 - 1<<21
		if x < 1<<28 {
			return x, i + 4
		}
		x += uint64(p[4])<<28 - 1<<28
		if x < 1<<35 {
			return x, i + 5
		}
	}
	return varint(b, i)
}

func varint(b []byte, i int) (uint64, int) {
	var x uint64
	for shift := 0; uint(i) < uint(len(b)); shift += 7 {
		c := uint64(b[i])
		i++
		if shift == 63 && c > 1 {
			break
		}
		x |= c & 0x7f << shift
		if c < 0x80 {
			return x, i
		}
	}
	return 0, Bad
}

// Len reads the length of a field at b[i:]. It returns the length and the position behind it; the
// bytes are all in b. If not, the position is Bad.
func Len(b []byte, i int) (int, int) {
	n, i := Varint(b, i)
	if i < 0 || n > uint64(len(b)-i) {
		return 0, Bad
	}
	return int(n), i
}

// Tag reads a tag at b[i:]. It returns the position behind it, or Bad if it is not a valid tag.
func Tag(b []byte, i int) (uint32, int) {
	v, i := Varint(b, i)
	if i < 0 || v > math.MaxUint32 || v < 1<<3 {
		return 0, Bad
	}
	return uint32(v), i
}

// Skip returns the position behind the value of an unknown field whose tag ends at b[i:], or Bad.
func Skip(b []byte, i int, tag uint32) int {
	if uint(i) > uint(len(b)) || tag < 1<<3 {
		return Bad
	}
	n := protowire.ConsumeFieldValue(protowire.Number(tag>>3), protowire.Type(tag&7), b[i:])
	if n < 0 {
		return Bad
	}
	return i + n
}

// Unknown appends the unknown field whose tag ends at b[i:] to fields, and returns the position
// behind its value, or Bad.
func Unknown(fields, b []byte, i int, tag uint32) ([]byte, int) {
	end := Skip(b, i, tag)
	if end < 0 {
		return fields, Bad
	}
	fields = protowire.AppendVarint(fields, uint64(tag))
	return append(fields, b[i:end]...), end
}

// Group returns the end of the content of a group whose start tag ends at b[i:], and the position
// behind its end tag, or Bad for both.
func Group(b []byte, i int, tag uint32) (end, next int) {
	if uint(i) > uint(len(b)) {
		return Bad, Bad
	}
	content, n := protowire.ConsumeGroup(protowire.Number(tag>>3), b[i:])
	if n < 0 {
		return Bad, Bad
	}
	return i + len(content), i + n
}

// Run returns the number of fields with this tag that follow each other, and the bytes of their
// values; i is the position behind the first one's tag. It counts only fields that are complete,
// but the first one always.
func Run(b []byte, i int, tag uint32) (n, size int) {
	length := TagSize(tag)
	for {
		start := i
		switch tag & 7 {
		case 0:
			for uint(i) < uint(len(b)) && b[i] >= 0x80 {
				i++
			}
			i++
		case 1:
			i += 8
		case 2:
			n, next := Len(b, i)
			i = next + n
		case 5:
			i += 4
		default:
			_, i = Group(b, i, tag)
		}
		n++
		if i < 0 || i > len(b) {
			return n, size
		}
		size += i - start
		if !at(b, i, tag, length) {
			return n, size
		}
		i += length
	}
}

// at reports whether the tag of this length is at b[i:].
func at(b []byte, i int, tag uint32, length int) bool {
	if len(b)-i < length {
		return false
	}
	for ; length > 1; length-- {
		if b[i] != byte(tag)|0x80 {
			return false
		}
		tag >>= 7
		i++
	}
	return b[i] == byte(tag)
}

// TagSize returns the encoded size of a tag.
func TagSize(tag uint32) int { return (bits.Len32(tag|1) + 6) / 7 }

// chunkBytes limits the elements of a list that are allocated together, and so the memory that one
// of them keeps.
const chunkBytes = 8192

// Elements describes the elements of a list that follow each other.
type Elements struct {
	Left  int // not decoded yet
	count int
	size  int
}

// Count counts the elements from the one whose tag ends at b[i:].
func Count(b []byte, i int, tag uint32) Elements {
	n, size := Run(b, i, tag)
	return Elements{n, n, size}
}

// Average returns the average size of an element in bytes.
func (e *Elements) Average() int { return e.size / e.count }

// Chunk returns the number of elements, of this size in memory, to allocate together.
func (s *State) Chunk(e Elements, size uintptr) int {
	if s.Mode == Separate {
		return 1
	}
	return min(e.Left, 1+chunkBytes/int(size))
}

// Grow makes room for n more elements: for exactly n, if there are none yet.
func Grow[T any](list []T, n int) []T { return grow(list, n) }

// New returns a pointer to a copy of v.
func New[T any](v T) *T { return &v }

// Entries returns for how many entries a map is made, of the run that begins with the one whose
// tag ends at b[i:]. Empty entries, which all have the same key, count less.
func Entries(b []byte, i int, tag uint32) int {
	n, size := Run(b, i, tag)
	return min(n, 1+size/4)
}

// EntryText returns the bytes of the keys and the values, where they are text, in a run of entries
// that begins with the one whose tag ends at b[i:], if the key is first in an entry.
func EntryText(b []byte, i int, tag uint32, key, value bool) int {
	text, length := 0, TagSize(tag)
	for {
		n, start := Len(b, i)
		if start < 0 {
			return text
		}
		i = start + n
		text += entryText(b[start:i], key, value)
		if !at(b, i, tag, length) {
			return text
		}
		i += length
	}
}

func entryText(b []byte, key, value bool) int {
	text := 0
	if len(b) < 2 {
		return 0
	}
	i := 1
	if key {
		n, start := Len(b, i)
		if b[0] != 1<<3|2 || start < 0 {
			return 0
		}
		text = n
		i = start + n
	} else if i = Skip(b, i, uint32(b[0])); i < 0 {
		return 0
	}
	if value && i < len(b) && b[i] == 2<<3|2 {
		if n, start := Len(b, i+1); start >= 0 {
			text += n
		}
	}
	return text
}
