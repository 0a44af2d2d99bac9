package lz4

import (
	"encoding/binary"
	"math/bits"
)

// The primes of xxHash's 32-bit variant.
const (
	prime1 uint32 = 2654435761
	prime2 uint32 = 2246822519
	prime3 uint32 = 3266489917
	prime4 uint32 = 668265263
	prime5 uint32 = 374761393
)

// xxh32 is the 32-bit variant of xxHash with the seed 0, the checksum of LZ4 frames; see
// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md. It is implemented here because
// the library that compresses the blocks keeps its own in an internal package, and the maintained
// ones have the 64-bit variants, XXH64 and XXH3, which LZ4 does not use.
func xxh32(b []byte) uint32 {
	n := uint32(len(b))
	h := prime5
	if len(b) >= 16 {
		var seed uint32
		v1, v2, v3, v4 := seed+prime1+prime2, seed+prime2, seed, seed-prime1
		for ; len(b) >= 16; b = b[16:] {
			v1 = xxhRound(v1, binary.LittleEndian.Uint32(b))
			v2 = xxhRound(v2, binary.LittleEndian.Uint32(b[4:]))
			v3 = xxhRound(v3, binary.LittleEndian.Uint32(b[8:]))
			v4 = xxhRound(v4, binary.LittleEndian.Uint32(b[12:]))
		}
		h = bits.RotateLeft32(v1, 1) + bits.RotateLeft32(v2, 7) + bits.RotateLeft32(v3, 12) + bits.RotateLeft32(v4, 18)
	}
	h += n
	for ; len(b) >= 4; b = b[4:] {
		h += binary.LittleEndian.Uint32(b) * prime3
		h = bits.RotateLeft32(h, 17) * prime4
	}
	for _, c := range b {
		h += uint32(c) * prime5
		h = bits.RotateLeft32(h, 11) * prime1
	}
	h ^= h >> 15
	h *= prime2
	h ^= h >> 13
	h *= prime3
	return h ^ h>>16
}

func xxhRound(v, lane uint32) uint32 {
	return bits.RotateLeft32(v+lane*prime2, 13) * prime1
}
