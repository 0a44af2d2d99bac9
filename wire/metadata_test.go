package wire_test

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

const noLimit = 1<<64 - 1

func TestMetadataRoundTrip(t *testing.T) {
	for _, c := range []struct {
		name  string
		pairs []wire.Pair
	}{
		{"none", []wire.Pair{}},
		{"one", []wire.Pair{{Key: "tenant", Value: "acme"}}},
		{"empty value", []wire.Pair{{Key: "k", Value: ""}}},
		{"every character of a key", []wire.Pair{{Key: "abcdefghijklmnopqrstuvwxyz0123456789-_.", Value: "v"}}},
		{"text", []wire.Pair{{Key: "k", Value: "größe\t计算 \x7F"}}},
		{"binary", []wire.Pair{{Key: "k-bin", Value: "\x00\r\n\xFF\xFE"}}},
		{"the same key again, in order", []wire.Pair{{Key: "k", Value: "2"}, {Key: "a", Value: "0"}, {Key: "k", Value: "1"}}},
		{"almost reserved", []wire.Pair{{Key: "anser", Value: "v"}, {Key: "anser.x", Value: "v"}, {Key: "x-anser-", Value: "v"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wire.AppendMetadata([]byte("kept"), c.pairs)
			got, err := wire.ParseMetadata(b[4:], noLimit)
			if err != nil {
				t.Fatal(err)
			}
			if string(b[:4]) != "kept" || !reflect.DeepEqual(got, c.pairs) {
				t.Fatalf("parsed %q, want %q; dst begins with %q", got, c.pairs, b[:4])
			}
		})
	}
}

func TestMetadataAbsent(t *testing.T) {
	if pairs, err := wire.ParseMetadata(nil, 0); pairs != nil || err != nil {
		t.Fatalf("parsed %q, %v", pairs, err)
	}
}

// The strings must not change when the parsed buffer is reused.
func TestMetadataDoesNotAliasItsInput(t *testing.T) {
	b := wire.AppendMetadata(nil, []wire.Pair{{Key: "tenant", Value: "acme"}})
	pairs, err := wire.ParseMetadata(b, noLimit)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	if want := (wire.Pair{Key: "tenant", Value: "acme"}); pairs[0] != want {
		t.Fatalf("pair is now %q", pairs[0])
	}
}

func TestMetadataPairRefused(t *testing.T) {
	for _, c := range []struct{ name, key, value string }{
		{"empty key", "", "v"},
		{"key of limit+1", strings.Repeat("k", 256), "v"},
		{"upper case key", "Tenant", "v"},
		{"space in key", "a b", "v"},
		{"colon in key", "a:b", "v"},
		{"NUL in key", "a\x00", "v"},
		{"letter beyond ASCII in key", "größe", "v"},
		{"broken UTF-8 in key", "k\xFF", "v"},
		{"reserved key", "anser-token", "v"},
		{"reserved prefix alone", "anser-", "v"},
		{"reserved binary key", "anser-x-bin", "v"},
		{"CR in value", "k", "a\rb"},
		{"CR first in value", "k", "\rb"},
		{"LF in value", "k", "a\n"},
		{"LF first in value", "k", "\nb"},
		{"NUL in value", "k", "\x00"},
		{"broken UTF-8 in value", "k", "a\xFF"},
		{"surrogate in value", "k", "\xED\xA0\x80"},
		{"bytes under a key that only resembles a binary one", "k-bin.", "\xFF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantCode(t, wire.CheckPair(wire.Pair{Key: c.key, Value: c.value}), wire.InvalidArgument)
			// The pair is rejected at any position, and no part of the block is returned.
			b := wire.AppendMetadata(nil, []wire.Pair{{Key: "a", Value: "0"}, {Key: c.key, Value: c.value}, {Key: "z", Value: "1"}})
			pairs, err := wire.ParseMetadata(b, noLimit)
			wantCode(t, err, wire.InvalidArgument)
			if pairs != nil {
				t.Fatalf("parsed %q as well", pairs)
			}
		})
	}
}

func TestMetadataKeySize(t *testing.T) {
	for _, n := range []int{1, 254, 255} {
		if err := wire.CheckPair(wire.Pair{Key: strings.Repeat("k", n)}); err != nil {
			t.Errorf("key of %d bytes: %v", n, err)
		}
	}
}

func TestMetadataCount(t *testing.T) {
	for _, n := range []int{127, 128, 129, 10_000, 65_535} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			pairs := make([]wire.Pair, n)
			for i := range pairs {
				pairs[i] = wire.Pair{Key: "k", Value: "v"}
			}
			got, err := wire.ParseMetadata(wire.AppendMetadata(nil, pairs), noLimit)
			if n > 128 {
				wantCode(t, err, wire.ResourceExhausted)
			} else if err != nil || len(got) != n {
				t.Fatalf("parsed %d pairs, %v", len(got), err)
			}
		})
	}
}

func TestMetadataSize(t *testing.T) {
	const limit = 65_536
	for _, size := range []int{limit - 1, limit, limit + 1} {
		overhead := len(wire.AppendMetadata(nil, []wire.Pair{{Key: "k"}}))
		b := wire.AppendMetadata(nil, []wire.Pair{{Key: "k", Value: strings.Repeat("v", size-overhead)}})
		if len(b) != size {
			t.Fatalf("block of %d bytes, want %d", len(b), size)
		}
		_, err := wire.ParseMetadata(b, limit)
		if size > limit {
			wantCode(t, err, wire.ResourceExhausted)
		} else if err != nil {
			t.Errorf("block of %d bytes: %v", size, err)
		}
	}
}

// An invalid structure closes the connection even if the block is over a limit or contains an
// invalid pair: the rest of the frame cannot be trusted.
func TestMetadataBrokenStructureComesFirst(t *testing.T) {
	b := wire.AppendMetadata(nil, []wire.Pair{{Key: "BAD", Value: "v"}, {Key: "k", Value: "v"}})
	b[len(b)-1-4]++ // the length of the last value
	_, err := wire.ParseMetadata(b, 1)
	wantReason(t, err, wire.BadMetadata)
}

func TestMetadataTruncated(t *testing.T) {
	whole := wire.AppendMetadata(nil, []wire.Pair{{Key: "tenant", Value: "acme"}, {Key: "k-bin", Value: "\x00"}})
	for n := range len(whole) {
		// Truncated as by an incomplete frame, and with a length field that matches the remaining
		// bytes.
		_, err := wire.ParseMetadata(whole[:n:n], noLimit)
		wantReason(t, err, wire.BadMetadata)
		if n >= 4 {
			cut := append([]byte(nil), whole[:n]...)
			wire.PutLength(cut, uint32(n-4))
			_, err = wire.ParseMetadata(cut, noLimit)
			wantReason(t, err, wire.BadMetadata)
		}
	}
}

func TestMetadataMalformed(t *testing.T) {
	// block returns a block of one entry with the given lengths.
	block := func(length uint32, count, key uint16, value uint32) []byte {
		b := binary.LittleEndian.AppendUint32(nil, length)
		b = binary.LittleEndian.AppendUint16(b, count)
		b = binary.LittleEndian.AppendUint16(b, key)
		b = append(b, 'k')
		b = binary.LittleEndian.AppendUint32(b, value)
		return append(b, 'v')
	}
	const right = 10
	if _, err := wire.ParseMetadata(block(right, 1, 1, 1), noLimit); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		block []byte
	}{
		{"no bytes", []byte{}},
		{"length 0", block(0, 1, 1, 1)},
		{"length 1", block(1, 1, 1, 1)},
		{"length one short", block(right-1, 1, 1, 1)},
		{"length one over", block(right+1, 1, 1, 1)},
		{"length wraps 32 bits", block(0xFFFFFFFC, 1, 1, 1)},
		{"length 4 GiB", block(0xFFFFFFFF, 1, 1, 1)},
		{"no entries but bytes", block(right, 0, 1, 1)},
		{"an entry too many", block(right, 2, 1, 1)},
		{"65535 entries", block(right, 0xFFFF, 1, 1)},
		{"key longer than the block", block(right, 1, 7, 1)},
		{"key of 65535", block(right, 1, 0xFFFF, 1)},
		{"value longer than the block", block(right, 1, 1, 2)},
		{"value shorter than the block", block(right, 1, 1, 0)},
		{"value wraps 32 bits", block(right, 1, 1, 0xFFFFFFFC)},
		{"value of 4 GiB", block(right, 1, 1, 0xFFFFFFFF)},
		{"bytes after the block", append(block(right, 1, 1, 1), 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := wire.ParseMetadata(c.block, noLimit)
			wantReason(t, err, wire.BadMetadata)
		})
	}
}

func TestMetadataAllocations(t *testing.T) {
	pairs := make([]wire.Pair, 8)
	for i := range pairs {
		pairs[i] = wire.Pair{Key: "key", Value: "value"}
	}
	block := wire.AppendMetadata(nil, pairs)
	dst := make([]byte, 0, len(block))
	if allocs := testing.AllocsPerRun(100, func() { dst = wire.AppendMetadata(dst[:0], pairs) }); allocs != 0 {
		t.Errorf("AppendMetadata: %v allocations, want 0", allocs)
	}
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := wire.ParseMetadata(block, noLimit); err != nil {
			t.Error(err)
		}
	})
	if allocs > 2 { // the pairs, and one copy of the block for all their strings
		t.Errorf("ParseMetadata: %v allocations, want at most 2", allocs)
	}
}

func TestIdempotencyKey(t *testing.T) {
	user, key := wire.Pair{Key: "user", Value: "ann"}, wire.Pair{Key: wire.IdempotencyKey, Value: "QKJ6-41"}
	block := wire.AppendMetadata(nil, []wire.Pair{key, user})
	pairs, got, err := wire.ParseRequestMetadata(block, 1000)
	if err != nil || got != key.Value || len(pairs) != 1 || pairs[0] != user {
		t.Error(pairs, got, err)
	}
	if pairs, got, err := wire.ParseRequestMetadata(nil, 1000); pairs != nil || got != "" || err != nil {
		t.Error(pairs, got, err)
	}
	if _, err := wire.ParseMetadata(block, 1000); err == nil {
		t.Error("taken where there are no requests")
	}
	for _, bad := range []string{"", strings.Repeat("k", 129), "a b", "a\x7f", "ä", "a\n"} {
		if _, _, err := wire.ParseRequestMetadata(wire.AppendMetadata(nil, []wire.Pair{{Key: key.Key, Value: bad}}), 1000); err == nil {
			t.Errorf("key %q was taken", bad)
		}
	}
	if _, _, err := wire.ParseRequestMetadata(wire.AppendMetadata(nil, []wire.Pair{key, key}), 1000); err == nil {
		t.Error("two keys were taken")
	}
	if err := wire.CheckPair(key); err == nil {
		t.Error("users can set it as metadata")
	}
}

func TestMetadataValue(t *testing.T) {
	block := wire.AppendMetadata(nil, []wire.Pair{{Key: "a", Value: "1"}, {Key: "baggage", Value: "x=y"}, {Key: "a", Value: "2"}})
	for key, want := range map[string]string{"a": "2", "baggage": "x=y", "b": ""} {
		if got := wire.MetadataValue(block, key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
	for n := range block { // any block, though none that is truncated is accepted
		wire.MetadataValue(block[:n], "a")
	}
	if n := testing.AllocsPerRun(100, func() { wire.MetadataValue(block, "missing") }); n != 0 {
		t.Errorf("%v allocations for a key that is missing", n)
	}
}
