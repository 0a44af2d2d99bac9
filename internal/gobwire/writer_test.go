package gobwire_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"testing"

	"github.com/anser-rpc/anser/internal/gobwire"
)

type header struct {
	Name string
	Seq  int
}

type fits struct{ A, B int }

// moody encodes itself, or fails.
type moody struct{ Mood string }

func (m moody) GobEncode() ([]byte, error) {
	switch m.Mood {
	case "bad":
		return nil, errors.New("not today")
	case "awful":
		panic("not ever")
	}
	return []byte(m.Mood), nil
}

func (m *moody) GobDecode(b []byte) error { m.Mood = string(b); return nil }

type wraps struct {
	Text  string
	Moody moody
}

// late has an interface before the part that fails, so that the stream already contains a part of
// it.
type late struct {
	First any
	Moody moody
}

type hidden struct{ a int }

func TestWriterTakesBackWhatFailed(t *testing.T) {
	w := gobwire.NewWriter()
	var b bytes.Buffer
	for _, bad := range []any{
		wraps{"x", moody{"bad"}}, wraps{"x", moody{"awful"}}, hidden{1}, (*fits)(nil), nil, make(chan int), func() {},
	} {
		if err := w.Append(&b, header{"bad", 1}, bad); err == nil || errors.Is(err, gobwire.ErrBroken) {
			t.Errorf("%T: %v", bad, err)
		}
		if err := w.Append(&b, header{"good", 2}, fits{3, 4}); err != nil {
			t.Fatal(err)
		}
		if err := w.Append(&b, header{"wraps", 3}, wraps{"y", moody{"good"}}); err != nil {
			t.Fatal(err)
		}
	}
	dec := gob.NewDecoder(&b)
	for range 7 {
		var h header
		var f fits
		if err := errors.Join(dec.Decode(&h), dec.Decode(&f)); err != nil || h.Name != "good" || f != (fits{3, 4}) {
			t.Fatal(h, f, err)
		}
		var ws wraps
		if err := errors.Join(dec.Decode(&h), dec.Decode(&ws)); err != nil || h.Name != "wraps" || ws.Moody.Mood != "good" {
			t.Fatal(h, ws, err)
		}
	}
	if b.Len() > 0 {
		t.Errorf("%d bytes are left", b.Len())
	}
}

func TestWriterSaysWhenTheStreamIsBroken(t *testing.T) {
	w := gobwire.NewWriter()
	var b bytes.Buffer
	err := w.Append(&b, header{}, late{inner{}, moody{"bad"}})
	if !errors.Is(err, gobwire.ErrBroken) {
		t.Errorf("got %v", err)
	}
}
