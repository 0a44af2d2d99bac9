package codec_test

import (
	"encoding/binary"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// appender appends to its argument.
type appender struct {
	N    uint32
	Text string
}

func (a *appender) AppendBinary(b []byte) ([]byte, error) {
	return append(binary.LittleEndian.AppendUint32(b, a.N), a.Text...), nil
}

func (a *appender) UnmarshalBinary(b []byte) error {
	if len(b) < 4 {
		return errors.New("too short")
	}
	a.N, a.Text = binary.LittleEndian.Uint32(b), string(b[4:])
	return nil
}

// colfer has Colfer's methods, in the same order of preference.
type colfer struct {
	text  string
	wrong int // error in the result of MarshalTo
}

func (c *colfer) MarshalLen() (int, error)       { return len(c.text), nil }
func (c *colfer) MarshalTo(b []byte) int         { return copy(b, c.text) + c.wrong }
func (c *colfer) UnmarshalBinary(b []byte) error { c.text = string(b); return nil }
func (c *colfer) MarshalBinary() ([]byte, error) {
	return nil, errors.New("MarshalTo needs no memory and should have been used")
}

// careless decodes like a generator that trusts its input.
type careless struct{ A byte }

func (c *careless) MarshalBinary() ([]byte, error) { return []byte{c.A}, nil }
func (c *careless) UnmarshalBinary(b []byte) error { c.A = b[0]; return nil }

func TestBinaryConformance(t *testing.T) {
	now := time.Now().UTC().Round(0)
	link, err := url.Parse("https://example.com/a?b=c")
	if err != nil {
		t.Fatal(err)
	}
	codectest.Run(t, codectest.Suite{
		Codec:   codec.Binary{},
		Values:  []any{&appender{7, "seven"}, &colfer{text: "colfer"}, &careless{3}, &now, link},
		Misfits: []any{new(int), &struct{ A int }{1}, new([]byte), big.NewInt(3)},
		Hostile: []codectest.Input{
			{Name: "62 a decoder that panics", Data: nil, Into: &careless{}},
			{Name: "61 wrong type", Data: []byte("x"), Into: &appender{}},
			{Name: "46 truncated", Data: []byte{1, 2, 3}, Into: &appender{}},
		},
	})
}

func TestBinaryErrorsSayWhatToDo(t *testing.T) {
	_, err := codec.Binary{}.Append(nil, new(int))
	if err == nil || !strings.Contains(err.Error(), "*int") || !strings.Contains(err.Error(), "AppendBinary") {
		t.Errorf("error: %v", err)
	}
	err = codec.Binary{}.Unmarshal(nil, new(careless))
	if err == nil || !strings.Contains(err.Error(), "careless panicked") {
		t.Errorf("error: %v", err)
	}
	if _, err := (codec.Binary{}).Append(nil, &colfer{text: "abc", wrong: -1}); err == nil {
		t.Error("MarshalTo that wrote less than MarshalLen announced was accepted")
	}
}

func FuzzBinary(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("abcdef"))
	codectest.Fuzz(f, codec.Binary{}, &appender{}, &colfer{}, &careless{}, &time.Time{})
}

// self is a message that marshals itself, with vtproto's code for comparable figures.
type self struct{ benchpb.BenchmarkMessage }

func (s *self) MarshalLen() (int, error)       { return s.SizeVT(), nil }
func (s *self) UnmarshalBinary(b []byte) error { return s.UnmarshalVT(b) }
func (s *self) MarshalTo(b []byte) int {
	n, err := s.MarshalToSizedBufferVT(b)
	if err != nil {
		return -1
	}
	return n
}

func newSelf(t testing.TB) *self {
	m := new(self)
	if err := m.UnmarshalBinary(serialized(t)); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBinaryAllocations(t *testing.T) {
	codectest.Ceiling(t, codec.Binary{}, newSelf(t), 0, 48)
}

func BenchmarkBinary(b *testing.B) {
	codectest.Bench(b, codec.Binary{}, newSelf(b))
}
