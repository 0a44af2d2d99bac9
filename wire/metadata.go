package wire

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// Pair is one entry of a metadata block.
type Pair struct{ Key, Value string }

// AppendMetadata appends a metadata block with its length field. The pairs must satisfy
// [CheckPair]; a nil or empty list gives an empty block.
func AppendMetadata(dst []byte, pairs []Pair) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(pairs)))
	for _, p := range pairs {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(p.Key)))
		dst = append(dst, p.Key...)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(p.Value)))
		dst = append(dst, p.Value...)
	}
	PutLength(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// splitMetadata cuts the metadata block, with its length field, off the front of b.
func splitMetadata(flags Flags, b []byte) (block, rest []byte, err error) {
	if flags&FlagMetadata == 0 {
		return nil, b, nil
	}
	if len(b) < 6 {
		return nil, nil, Errorf(BadMetadata, "metadata block is cut short at %d bytes", len(b))
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if n < 2 || n > uint64(len(b)-4) {
		return nil, nil, Errorf(BadMetadata, "metadata block of %d bytes in a frame with %d left", n, len(b)-4)
	}
	return b[: 4+n : 4+n], b[4+n:], nil
}

// ParseMetadata reads a block as the parse functions of this package return it. A broken structure
// is an [*Error]; too many bytes or entries, or an entry that [CheckPair] refuses, is a [*CallError].
func ParseMetadata(block []byte, maxBytes uint64) ([]Pair, error) {
	if block == nil {
		return nil, nil
	}
	block, rest, err := splitMetadata(FlagMetadata, block)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, Errorf(BadMetadata, "%d bytes after the metadata block", len(rest))
	}
	count := int(binary.LittleEndian.Uint16(block[4:]))
	var fault error
	if uint64(len(block)) > maxBytes {
		fault = callErrorf(ResourceExhausted, "metadata of %d bytes is over the limit of %d", len(block), maxBytes)
	} else if count > MaxPairs {
		fault = callErrorf(ResourceExhausted, "metadata with %d entries is over the limit of %d", count, MaxPairs)
	}
	var pairs []Pair
	if fault == nil {
		pairs = make([]Pair, 0, count)
	}
	b := block[6:]
	for range count {
		var key, value []byte
		if key, b, err = cut(b, 2); err != nil {
			return nil, err
		}
		if value, b, err = cut(b, 4); err != nil {
			return nil, err
		}
		if fault != nil {
			continue
		}
		p := Pair{string(key), string(value)}
		if fault = CheckPair(p); fault == nil {
			pairs = append(pairs, p)
		}
	}
	if len(b) != 0 {
		return nil, Errorf(BadMetadata, "%d bytes after the last metadata entry", len(b))
	}
	if fault != nil {
		return nil, fault
	}
	return pairs, nil
}

// cut takes a length of the given width and that many bytes off the front of b.
func cut(b []byte, width int) (field, rest []byte, err error) {
	if len(b) < width {
		return nil, nil, Errorf(BadMetadata, "metadata entry is cut short")
	}
	var n uint64
	if width == 2 {
		n = uint64(binary.LittleEndian.Uint16(b))
	} else {
		n = uint64(binary.LittleEndian.Uint32(b))
	}
	b = b[width:]
	if n > uint64(len(b)) {
		return nil, nil, Errorf(BadMetadata, "metadata field of %d bytes in a block with %d left", n, len(b))
	}
	return b[:n], b[n:], nil
}

// CheckPair says whether p may be sent as metadata; the error is a [*CallError].
func CheckPair(p Pair) error {
	if p.Key == "" || len(p.Key) > MaxKeySize {
		return callErrorf(InvalidArgument, "metadata key of %d bytes, want 1 to %d", len(p.Key), MaxKeySize)
	}
	for i := range len(p.Key) {
		c := p.Key[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return callErrorf(InvalidArgument, "metadata key %q has a character outside a-z 0-9 - _ .", p.Key)
		}
	}
	if strings.HasPrefix(p.Key, ReservedPrefix) {
		return callErrorf(InvalidArgument, "metadata key %q is reserved: keys that begin with %q belong to the protocol", p.Key, ReservedPrefix)
	}
	if strings.HasSuffix(p.Key, "-bin") {
		return nil
	}
	if !utf8.ValidString(p.Value) || strings.ContainsAny(p.Value, "\r\n\x00") {
		return callErrorf(InvalidArgument, "metadata value of key %q is not plain text: end the key in -bin to send bytes", p.Key)
	}
	return nil
}
