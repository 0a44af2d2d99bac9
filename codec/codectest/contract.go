package codectest

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser/codec"
)

func (s Suite) identity(t *testing.T) {
	if s.Codec.ID() == 0 {
		t.Error("ID is 0, which is never valid on the wire")
	}
	if n := s.Codec.Name(); n == "" || n != strings.ToLower(n) || strings.ContainsAny(n, " \t\n/,") {
		t.Errorf("Name %q is not one lower-case word", n)
	}
}

func (s Suite) roundTrip(t *testing.T) {
	for _, v := range s.Values {
		got := fresh(v)
		if err := s.Codec.Unmarshal(s.encode(t, v), got); err != nil {
			t.Errorf("Unmarshal(%T): %v", v, err)
			continue
		}
		if !s.Equal(v, got) {
			t.Errorf("%T came back different\ngot  %+v\nwant %+v", v, got, v)
		}
	}
}

// appendInPlace checks that the contents of dst stay, and that its capacity is used.
func (s Suite) appendInPlace(t *testing.T) {
	const prefix = "what was there before"
	for _, v := range s.Values {
		// A capacity of half the bytes is too small, the exact size and more are sufficient. A
		// codec may temporarily need more space, so only the largest one is certain to be used in
		// place.
		n := len(s.encode(t, v))
		for _, room := range []int{0, n / 2, n, 4*n + 1024} {
			dst := append(make([]byte, 0, len(prefix)+room), prefix...)
			out, err := s.Codec.Append(dst, v)
			if err != nil {
				t.Fatalf("Append(%T): %v", v, err)
			}
			if !bytes.HasPrefix(out, []byte(prefix)) || string(dst) != prefix {
				t.Fatalf("Append(%T) with room for %d bytes of %d damaged dst", v, room, n)
			}
			if room > n && &out[0] != &dst[0] {
				t.Errorf("Append(%T) moved dst, which had room", v)
			}
			got := fresh(v)
			if err := s.Codec.Unmarshal(out[len(prefix):], got); err != nil || !s.Equal(v, got) {
				t.Errorf("Append(%T) after other bytes does not decode: %v", v, err)
			}
		}
	}
}

func (s Suite) dataNotKept(t *testing.T) {
	for _, v := range s.Values {
		data, got := s.encode(t, v), fresh(v)
		if err := s.Codec.Unmarshal(data, got); err != nil {
			t.Fatalf("Unmarshal(%T): %v", v, err)
		}
		for i := range data {
			data[i] = '!'
		}
		if !s.Equal(v, got) {
			t.Errorf("%T shares memory with the data that it was decoded from: %+v", v, got)
		}
	}
}

// canonical checks that a codec with AppendCanonical encodes equal values the same way. The
// iteration order of a map is random, so a few attempts suffice.
func (s Suite) canonical(t *testing.T) {
	c, ok := s.Codec.(codec.Canonical)
	if !ok {
		return // it is optional
	}
	for _, v := range s.Values {
		var first []byte
		for range 10 {
			out, err := c.AppendCanonical([]byte("before"), v)
			if err != nil || !bytes.HasPrefix(out, []byte("before")) {
				t.Fatalf("AppendCanonical(%T): %q, %v", v, out, err)
			}
			if first == nil {
				first = out
			}
			if !bytes.Equal(out, first) {
				t.Fatalf("AppendCanonical(%T) wrote %x and then %x", v, first, out)
			}
		}
		got := fresh(v)
		if err := s.Codec.Unmarshal(first[len("before"):], got); err != nil || !s.Equal(v, got) {
			t.Errorf("the result of AppendCanonical(%T) does not decode: %v\ngot  %+v\nwant %+v", v, err, got, v)
		}
	}
	for _, v := range append([]any{nil}, append(s.nulls(), s.Misfits...)...) {
		if out, err := c.AppendCanonical([]byte("before"), v); err == nil || string(out) != "before" {
			t.Errorf("AppendCanonical(%T): %q, %v; want an error and what was there before", v, out, err)
		}
	}
}

func (s Suite) concurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				for _, v := range s.Values {
					b, err := s.Codec.Append(nil, v)
					if err != nil {
						t.Errorf("Append(%T): %v", v, err)
						return
					}
					got := fresh(v)
					if err := s.Codec.Unmarshal(b, got); err != nil || !s.Equal(v, got) {
						t.Errorf("%T came back different: %v", v, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func (s Suite) fits(t *testing.T) {
	f, ok := s.Codec.(codec.Fitter)
	if !ok {
		return // it is optional
	}
	if f.Fits(nil) {
		t.Error("Fits(nil) is true")
	}
	for _, v := range s.Values {
		if !f.Fits(v) || !f.Fits(null(v)) {
			t.Errorf("Fits(%T) is false, with a value or without", v)
		}
	}
	for _, v := range s.Misfits {
		if f.Fits(v) {
			t.Errorf("Fits(%T) is true", v)
		}
	}
}

func (s Suite) nothingToEncode(t *testing.T) {
	for _, v := range append([]any{nil}, s.nulls()...) {
		s.refusesToEncode(t, v)
	}
}

func (s Suite) refusesToEncode(t *testing.T, v any) {
	t.Helper()
	dst := append(make([]byte, 0, 4096), "before"...)
	out, err := s.Codec.Append(dst, v)
	if err == nil {
		t.Errorf("Append(%T) gave %q, want an error", v, out)
	}
	if string(dst) != "before" {
		t.Errorf("Append(%T) failed and left %q in dst", v, dst)
	}
}

func (s Suite) nothingToDecodeInto(t *testing.T) {
	data := s.encode(t, s.Values[0])
	for _, v := range append([]any{nil}, s.nulls()...) {
		if err := s.Codec.Unmarshal(data, v); err == nil {
			t.Errorf("Unmarshal into a nil %T: no error", v)
		}
	}
}

func (s Suite) nulls() []any {
	var nulls []any
	for _, v := range s.Values {
		nulls = append(nulls, null(v))
	}
	return nulls
}

func (s Suite) misfits(t *testing.T) {
	data := s.encode(t, s.Values[0])
	for _, v := range s.Misfits {
		s.refusesToEncode(t, v)
		if err := s.Codec.Unmarshal(data, v); err == nil {
			t.Errorf("Unmarshal into %T: no error", v)
		}
	}
}
