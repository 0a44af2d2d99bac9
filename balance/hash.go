package balance

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Hash returns the hash of a key: the same in every process, on every machine and in every version
// of this package, and never 0. It does not resist an attacker that chooses colliding keys.
//
// It is wyhash, final version 3, with the seed 0 (Wang Yi, 2020). docs/benchmarks.md compares it
// with the hashes of the standard library. It is implemented here, and not taken from a library
// such as xxh3, for three reasons: the standard library has no 64-bit hash that is fast and the
// same in every process (hash/maphash has a seed per process); the values are frozen, as clients
// of all versions must find the same endpoint for a key, so the update of a library must not be
// able to change them; and 40 lines, checked by the author's test vectors, are no reason for a
// dependency of the core. The keys are short: a hash takes 5 ns.
func Hash(key string) uint64 { return max(wyhash(bytesOf(key), 0), 1) }

// bytesOf returns the bytes of s without a copy. They must not be modified.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// The default secret of wyhash.
const (
	wy0 = 0xa0761d6478bd642f
	wy1 = 0xe7037ed1a0b428db
	wy2 = 0x8ebc6af09c88c6e3
	wy3 = 0x589965cc75374cc3
)

func wyhash(s []byte, seed uint64) uint64 {
	n := len(s)
	seed ^= wy0
	var a, b uint64
	switch {
	case n > 16:
		i := 0
		if n > 48 {
			x, y := seed, seed
			for ; n-i > 48; i += 48 {
				seed = mum(read8(s, i)^wy1, read8(s, i+8)^seed)
				x = mum(read8(s, i+16)^wy2, read8(s, i+24)^x)
				y = mum(read8(s, i+32)^wy3, read8(s, i+40)^y)
			}
			seed ^= x ^ y
		}
		for ; n-i > 16; i += 16 {
			seed = mum(read8(s, i)^wy1, read8(s, i+8)^seed)
		}
		a, b = read8(s, n-16), read8(s, n-8)
	case n >= 4:
		half := n >> 3 << 2
		a = read4(s, 0)<<32 | read4(s, half)
		b = read4(s, n-4)<<32 | read4(s, n-4-half)
	case n > 0:
		a = uint64(s[0])<<16 | uint64(s[n>>1])<<8 | uint64(s[n-1])
	}
	return mum(wy1^uint64(n), mum(a^wy1, b^seed))
}

// mum multiplies two words and folds the product.
func mum(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func read4(s []byte, i int) uint64 { return uint64(binary.LittleEndian.Uint32(s[i:])) }

func read8(s []byte, i int) uint64 { return binary.LittleEndian.Uint64(s[i:]) }

// scatter spreads numbers that are close together over all 64 bits: the finalizer of MurmurHash3.
func scatter(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
