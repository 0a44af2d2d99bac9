package pbrt

import (
	"encoding/binary"
	"math"
	"slices"
)

type (
	integer interface {
		~int32 | ~uint32 | ~int64 | ~uint64
	}
	word32 interface{ int32 | uint32 | float32 }
	word64 interface{ int64 | uint64 | float64 }
)

// varints returns the number of varints in b.
func varints(b []byte) int {
	n := 0
	for _, c := range b {
		if c < 0x80 {
			n++
		}
	}
	return n
}

// grow makes room for n more elements: exactly, if list is empty.
func grow[T any](list []T, n int) []T {
	if list == nil && n > 0 {
		return make([]T, 0, n)
	}
	return slices.Grow(list, n)
}

// Room makes room for the elements of a run of fields (see Run): if list is full, for all of them.
func Room[T any](list []T, b []byte, i int, tag uint32) []T {
	if len(list) < cap(list) {
		return list
	}
	n, _ := Run(b, i, tag)
	return grow(list, n)
}

// Varints appends the varints in b to list. It reports whether b is valid.
func Varints[T integer](list []T, b []byte) ([]T, bool) {
	list = grow(list, varints(b))
	for i := 0; i < len(b); {
		if b[i] < 0x80 {
			list = append(list, T(b[i]))
			i++
			continue
		}
		var v uint64
		if v, i = Varint(b, i); i < 0 {
			return list, false
		}
		list = append(list, T(v))
	}
	return list, true
}

// ZigZags32 does the same with sint32.
func ZigZags32(list []int32, b []byte) ([]int32, bool) {
	list = grow(list, varints(b))
	for i := 0; i < len(b); {
		var v uint64
		if v, i = Varint(b, i); i < 0 {
			return list, false
		}
		list = append(list, UnZigZag32(v))
	}
	return list, true
}

// ZigZags64 does the same with sint64.
func ZigZags64(list []int64, b []byte) ([]int64, bool) {
	list = grow(list, varints(b))
	for i := 0; i < len(b); {
		var v uint64
		if v, i = Varint(b, i); i < 0 {
			return list, false
		}
		list = append(list, UnZigZag64(v))
	}
	return list, true
}

// Bools does the same with bool.
func Bools(list []bool, b []byte) ([]bool, bool) {
	list = grow(list, varints(b))
	for i := 0; i < len(b); {
		var v uint64
		if v, i = Varint(b, i); i < 0 {
			return list, false
		}
		list = append(list, v != 0)
	}
	return list, true
}

// Fixed32s appends the four-byte values in b to list. It reports whether b is valid.
func Fixed32s[T word32](list []T, b []byte) ([]T, bool) {
	n := len(b) / 4
	list = grow(list, n)
	at := len(list)
	list = list[:at+n]
	switch into := any(list[at:]).(type) {
	case []uint32:
		for k := range into {
			into[k] = binary.LittleEndian.Uint32(b[4*k:])
		}
	case []int32:
		for k := range into {
			into[k] = int32(binary.LittleEndian.Uint32(b[4*k:]))
		}
	case []float32:
		for k := range into {
			into[k] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:]))
		}
	}
	return list, len(b)%4 == 0
}

// Fixed64s does the same with eight bytes.
func Fixed64s[T word64](list []T, b []byte) ([]T, bool) {
	n := len(b) / 8
	list = grow(list, n)
	at := len(list)
	list = list[:at+n]
	switch into := any(list[at:]).(type) {
	case []uint64:
		for k := range into {
			into[k] = binary.LittleEndian.Uint64(b[8*k:])
		}
	case []int64:
		for k := range into {
			into[k] = int64(binary.LittleEndian.Uint64(b[8*k:]))
		}
	case []float64:
		for k := range into {
			into[k] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*k:]))
		}
	}
	return list, len(b)%8 == 0
}

// Fixed32 reads four bytes at b[i:], and returns the position behind them, or Bad.
func Fixed32(b []byte, i int) (uint32, int) {
	if uint(i) > uint(len(b)) || len(b)-i < 4 {
		return 0, Bad
	}
	return binary.LittleEndian.Uint32(b[i:]), i + 4
}

// Fixed64 reads eight bytes at b[i:], and returns the position behind them, or Bad.
func Fixed64(b []byte, i int) (uint64, int) {
	if uint(i) > uint(len(b)) || len(b)-i < 8 {
		return 0, Bad
	}
	return binary.LittleEndian.Uint64(b[i:]), i + 8
}
