package codectest

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/anser-rpc/anser/codec"
)

// A decoder may allocate freeBytes, and bytesPerByte per byte of input. The factor is what a Go
// map of empty maps needs for the two bytes of an entry; trusting a declared length would need
// millions.
const (
	freeBytes    = 64 << 10
	bytesPerByte = 256
)

// truncated cuts each value's encoding at every position.
func (s Suite) truncated(t *testing.T) {
	for _, v := range s.Values {
		data := s.encode(t, v)
		for i := range data {
			s.survives(t, fmt.Sprintf("%T cut at %d", v, i), data[:i:i], v)
		}
	}
}

// corrupted changes each byte of each value's encoding to the bytes with the most special
// meanings.
func (s Suite) corrupted(t *testing.T) {
	for _, v := range s.Values {
		data := s.encode(t, v)
		for i := range data {
			for _, b := range []byte{0, 0x7f, 0x80, 0xff, data[i] ^ 1, data[i] ^ 0x80} {
				bad := slices.Clone(data)
				bad[i] = b
				s.survives(t, fmt.Sprintf("%T with %#x at %d", v, b, i), bad, v)
			}
		}
	}
}

func (s Suite) survives(t *testing.T, name string, data []byte, into any) {
	t.Helper()
	used, panicked, _ := decode(s.Codec, data, into)
	if panicked != nil {
		t.Errorf("%s: %v", name, panicked)
	}
	if limit := uint64(freeBytes + bytesPerByte*len(data)); used > limit {
		t.Errorf("%s: decoding %d bytes allocated %d, the limit is %d", name, len(data), used, limit)
	}
}

func (s Suite) hostile(t *testing.T) {
	for _, in := range s.Hostile {
		t.Run(in.Name, func(t *testing.T) {
			s.survives(t, in.Name, in.Data, in.Into)
			if _, _, err := decode(s.Codec, in.Data, in.Into); err == nil {
				t.Error("accepted, want an error")
			}
		})
	}
}

// decode returns the number of bytes allocated by the decoder, the value of its panic, and its
// error.
func decode(c codec.Codec, data []byte, into any) (used uint64, panicked any, err error) {
	used = ^uint64(0)
	// Allocations of other goroutines are counted, too: the minimum of a few attempts is the
	// decoder's own.
	for range 3 {
		v := fresh(into)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		panicked, err = try(func() error { return c.Unmarshal(data, v) })
		runtime.ReadMemStats(&after)
		used = min(used, after.TotalAlloc-before.TotalAlloc)
		if panicked != nil || used <= freeBytes {
			break
		}
	}
	return used, panicked, err
}

func try(f func() error) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, f()
}

// Fuzz decodes the fuzzer's input into new values of the types that targets point to, which must
// neither panic nor use memory out of proportion. A decoded value is encoded, which may fail but
// must not panic; the encoding must decode again, and be encoded with the same length a second
// time. With a canonical codec the bytes are the same. Add seeds before calling it.
func Fuzz(f *testing.F, c codec.Codec, targets ...any) {
	f.Fuzz(func(t *testing.T, data []byte) {
		s := Suite{Codec: c}
		for _, target := range targets {
			s.survives(t, fmt.Sprintf("%T", target), data, target)
			v := fresh(target)
			if c.Unmarshal(data, v) == nil {
				s.comesBack(t, v)
			}
		}
	})
}

// comesBack checks that a decoded value survives another round trip, if it can be encoded at all.
func (s Suite) comesBack(t *testing.T, v any) {
	t.Helper()
	first := s.encoded(t, v)
	if first == nil {
		return
	}
	again := fresh(v)
	if panicked, err := try(func() error { return s.Codec.Unmarshal(first, again) }); panicked != nil || err != nil {
		t.Fatalf("a decoded %T is encoded as %x, which does not decode: %v, %v", v, first, panicked, err)
	}
	second := s.encoded(t, again)
	if _, canonical := s.Codec.(codec.Canonical); len(second) != len(first) || canonical && !bytes.Equal(first, second) {
		t.Fatalf("a decoded %T is encoded as %x, and the second time as %x", v, first, second)
	}
}

// encoded returns the encoding of v, the canonical one if possible, or nil if it cannot be
// encoded.
func (s Suite) encoded(t *testing.T, v any) (out []byte) {
	t.Helper()
	encode := s.Codec.Append
	if c, ok := s.Codec.(codec.Canonical); ok {
		encode = c.AppendCanonical
	}
	panicked, err := try(func() (err error) {
		out, err = encode([]byte{}, v)
		return err
	})
	if panicked != nil {
		t.Fatalf("encoding a decoded %T: %v", v, panicked)
	}
	if err != nil {
		return nil
	}
	return out
}
