package wire

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// Pair is one entry of a metadata block.
type Pair struct{ Key, Value string }

// AppendMetadata appends a metadata block with its length field. There must be at most MaxPairs
// pairs that satisfy [CheckPair]; a nil or empty list gives an empty block.
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

// splitMetadata removes the metadata block, with its length field, from the front of b.
func splitMetadata(flags Flags, b []byte) (block, rest []byte, err error) {
	if flags&FlagMetadata == 0 {
		return nil, b, nil
	}
	if len(b) < 6 {
		return nil, nil, Errorf(BadMetadata, "metadata block is truncated at %d bytes", len(b))
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if n < 2 || n > uint64(len(b)-4) {
		return nil, nil, Errorf(BadMetadata, "metadata block of %d bytes in a frame with %d left", n, len(b)-4)
	}
	return b[: 4+n : 4+n], b[4+n:], nil
}

// ParseMetadata parses a block returned by a parse function of this package. An invalid structure
// is an [*Error]; more than maxBytes bytes, including the length field, more than MaxPairs
// entries, or an entry rejected by [CheckPair], is a [*CallError]. Keys may occur more than once;
// the order is the sender's. The strings share one copy of the block, which lives as long as any
// of them.
func ParseMetadata(block []byte, maxBytes uint64) ([]Pair, error) {
	return parseMetadata(block, maxBytes, nil)
}

// ParseRequestMetadata is ParseMetadata for the block of a request, which may have an idempotency
// key. The key is not among the pairs, and "" if there is none.
func ParseRequestMetadata(block []byte, maxBytes uint64) (pairs []Pair, key string, err error) {
	pairs, err = parseMetadata(block, maxBytes, &key)
	return pairs, key, err
}

// parseMetadata stores an idempotency key in key, unless that is nil.
func parseMetadata(block []byte, maxBytes uint64, key *string) ([]Pair, error) {
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
	count, entries := int(binary.LittleEndian.Uint16(block[4:])), block[6:]
	if err := checkEntries(count, entries); err != nil {
		return nil, err
	}
	if uint64(len(block)) > maxBytes {
		return nil, callErrorf(ResourceExhausted, "metadata of %d bytes is over the limit of %d, which is fixed: send less, or send it in the message", len(block), maxBytes)
	}
	if count > MaxPairs {
		return nil, callErrorf(ResourceExhausted, "metadata with %d entries is over the limit of %d, which is fixed: send fewer", count, MaxPairs)
	}
	text := string(entries)
	pairs := make([]Pair, 0, count)
	for range count {
		var p Pair
		n := int(binary.LittleEndian.Uint16(entries))
		p.Key, text, entries = text[2:2+n], text[2+n:], entries[2+n:]
		n = int(binary.LittleEndian.Uint32(entries))
		p.Value, text, entries = text[4:4+n], text[4+n:], entries[4+n:]
		if key != nil && p.Key == IdempotencyKey {
			if *key != "" {
				return nil, callErrorf(InvalidArgument, "the request has two idempotency keys")
			}
			if err := CheckIdempotencyKey(p.Value); err != nil {
				return nil, err
			}
			*key = p.Value
			continue
		}
		if err := CheckPair(p); err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// MetadataValue returns the value of the last entry with the key in a block that a parse function
// of this package has accepted, or "". It allocates nothing else.
func MetadataValue(block []byte, key string) string {
	if len(block) < 6 {
		return ""
	}
	var value []byte
	for b := block[6:]; len(b) >= 2; {
		n := int(binary.LittleEndian.Uint16(b))
		if len(b) < 6+n {
			break
		}
		size := int(binary.LittleEndian.Uint32(b[2+n:]))
		if len(b)-6-n < size {
			break
		}
		if string(b[2:2+n]) == key {
			value = b[6+n : 6+n+size]
		}
		b = b[6+n+size:]
	}
	return string(value)
}

// CheckIdempotencyKey returns a [*CallError] if key is not a valid idempotency key.
func CheckIdempotencyKey(key string) error {
	if key == "" || len(key) > MaxIdempotencyKey {
		return callErrorf(InvalidArgument, "idempotency key of %d bytes, want 1 to %d", len(key), MaxIdempotencyKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return callErrorf(InvalidArgument, "idempotency key %q has a character that is not visible ASCII", key)
		}
	}
	return nil
}

// checkEntries checks that b is exactly count entries, whatever their contents are.
func checkEntries(count int, b []byte) (err error) {
	for range count {
		if b, err = skip(b, 2); err != nil {
			return err
		}
		if b, err = skip(b, 4); err != nil {
			return err
		}
	}
	if len(b) != 0 {
		return Errorf(BadMetadata, "%d bytes after the last metadata entry", len(b))
	}
	return nil
}

// skip removes a length of the given width and that many bytes from the front of b.
func skip(b []byte, width int) (rest []byte, err error) {
	if len(b) < width {
		return nil, Errorf(BadMetadata, "metadata entry is truncated")
	}
	var n uint64
	if width == 2 {
		n = uint64(binary.LittleEndian.Uint16(b))
	} else {
		n = uint64(binary.LittleEndian.Uint32(b))
	}
	b = b[width:]
	if n > uint64(len(b)) {
		return nil, Errorf(BadMetadata, "metadata field of %d bytes in a block with %d left", n, len(b))
	}
	return b[n:], nil
}

// CheckPair returns a [*CallError] if p must not be sent as metadata.
func CheckPair(p Pair) error {
	if p.Key == "" || len(p.Key) > MaxKeySize {
		return callErrorf(InvalidArgument, "metadata key of %d bytes, want 1 to %d", len(p.Key), MaxKeySize)
	}
	for i := range len(p.Key) {
		if !keyBytes[p.Key[i]] {
			return callErrorf(InvalidArgument, "metadata key %q has a character outside a-z 0-9 - _ .", p.Key)
		}
	}
	if strings.HasPrefix(p.Key, ReservedPrefix) {
		return callErrorf(InvalidArgument, "metadata key %q is reserved: keys that begin with %q belong to the protocol", p.Key, ReservedPrefix)
	}
	if !strings.HasSuffix(p.Key, "-bin") && !isPlainText(p.Value) {
		return callErrorf(InvalidArgument, "metadata value of key %q is not plain text: end the key in -bin to send bytes", p.Key)
	}
	return nil
}

// keyBytes is the set of bytes allowed in keys.
var keyBytes = func() (set [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyz0123456789-_." {
		set[c] = true
	}
	return set
}()

// isPlainText reports whether s is UTF-8 without CR, LF and NUL. Three vectorized searches are
// faster than strings.ContainsAny, which builds a set of the three bytes for every value.
func isPlainText(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, '\r') < 0 && strings.IndexByte(s, '\n') < 0 &&
		strings.IndexByte(s, 0) < 0
}
