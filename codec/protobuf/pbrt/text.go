package pbrt

import (
	"strings"
	"unsafe"

	"github.com/anser-rpc/anser/codec/internal/utf8text"
)

// Alias returns b as a string that shares its memory.
func Alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Own returns a copy of text that refers to the payload.
func (s *State) Own(v string) string {
	n := len(v)
	if n == 0 {
		return ""
	}
	if n > len(s.block) {
		return strings.Clone(v) // Separate
	}
	copy(s.block, v)
	v = Alias(s.block[:n])
	s.block = s.block[n:]
	return v
}

// OwnBytes returns a copy of bytes that refer to the payload.
func (s *State) OwnBytes(v []byte) []byte {
	n := len(v)
	if n == 0 {
		if v == nil {
			return nil
		}
		return []byte{}
	}
	if n > len(s.block) {
		return append([]byte(nil), v...) // Separate
	}
	copy(s.block, v)
	v = s.block[:n:n]
	s.block = s.block[n:]
	return v
}

// OwnAll replaces all strings by copies.
func (s *State) OwnAll(list []string) {
	for i, v := range list {
		list[i] = s.Own(v)
	}
}

// OwnAllBytes replaces all byte slices by copies.
func (s *State) OwnAllBytes(list [][]byte) {
	for i, v := range list {
		list[i] = s.OwnBytes(v)
	}
}

// Reserve makes room for n bytes of the keys and values of a map.
func (s *State) Reserve(n int) {
	if s.Mode == Shared {
		s.keys = newBlock(n)
	}
}

// Key returns a key or a value of a map as a string that is final: OpOwn cannot change keys.
func (s *State) Key(b []byte) string {
	if s.Mode == Borrow {
		return Alias(b)
	}
	n := len(b)
	if n > len(s.keys) {
		return string(b)
	}
	copy(s.keys, b)
	v := Alias(s.keys[:n])
	s.keys = s.keys[n:]
	return v
}

// KeyBytes does the same with the value of a map from bytes, which is not nil.
func (s *State) KeyBytes(b []byte) []byte {
	n := len(b)
	if s.Mode == Borrow {
		return b[:n:n]
	}
	if n == 0 || n > len(s.keys) {
		return append([]byte{}, b...)
	}
	copy(s.keys, b)
	v := s.keys[:n:n]
	s.keys = s.keys[n:]
	return v
}

// newBlock returns n bytes that need not be zero. strings.Builder is the only allocation in the
// standard library that neither clears nor copies.
func newBlock(n int) []byte {
	if n == 0 {
		return nil
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// Valid reports whether v is UTF-8.
func Valid(v string) bool { return utf8text.ValidString(v) }
