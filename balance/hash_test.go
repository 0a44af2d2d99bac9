package balance

import (
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"strings"
	"testing"
)

// The vectors are those published by the author of wyhash with final version 3, each with its
// index as the seed.
func TestWyhashVectors(t *testing.T) {
	for seed, v := range []struct {
		text string
		want uint64
	}{
		{"", 0x42bc986dc5eec4d3},
		{"a", 0x84508dc903c31551},
		{"abc", 0x0bc54887cfc9ecb1},
		{"message digest", 0x6e2ff3298208a67c},
		{"abcdefghijklmnopqrstuvwxyz", 0x9a64e42e897195b9},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 0x9199383239c32554},
		{strings.Repeat("1234567890", 8), 0x7c1ccf6bba30f5a5},
	} {
		if got := wyhash([]byte(v.text), uint64(seed)); got != v.want {
			t.Errorf("the hash of %q is %016x: want %016x", v.text, got, v.want)
		}
	}
}

// Clients of other versions and machines rely on these values.
func TestHashIsFrozen(t *testing.T) {
	if got := Hash("user-17"); got != frozen {
		t.Errorf("%#x: want %#x, as released", got, uint64(frozen))
	}
	if Hash("") == 0 {
		t.Error("a hash is 0, which means that there is no key")
	}
}

func TestScatterSpreadsNeighbours(t *testing.T) {
	var counts [64]int
	const n = 64_000
	for x := range uint64(n) {
		counts[scatter(x)>>58]++
	}
	for part, c := range counts {
		if c < 800 || c > 1200 {
			t.Errorf("%d of %d numbers fall into part %d of 64: want about 1000", c, n, part)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for _, n := range []int{12, 64, 581, 65536} {
		s := make([]byte, n)
		for _, h := range []struct {
			name string
			hash func() uint64
		}{
			{"wyhash", func() uint64 { return wyhash(s, 0) }},
			{"fnv1a+murmur", func() uint64 { f := fnv.New64a(); f.Write(s); return scatter(f.Sum64()) }},
			{"crc32c+murmur", func() uint64 { return scatter(uint64(crc32.Checksum(s, castagnoli))) }},
		} {
			b.Run(fmt.Sprintf("%s/bytes=%d", h.name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				var sum uint64
				for b.Loop() {
					sum += h.hash()
				}
				_ = sum
			})
		}
	}
}

const frozen = 0xe5be8bfdebe93050
