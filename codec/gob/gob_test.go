package gob_test

import (
	"bytes"
	stdgob "encoding/gob"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/gob"
	"github.com/anser-rpc/anser/internal/benchpb"
)

func TestMain(m *testing.M) {
	stdgob.Register(shape{})
	goleak.VerifyTestMain(m)
}

type shape struct{ Sides int }

type document struct {
	Name    string
	Bytes   []byte
	Fixed   [4]byte
	Map     map[string]string
	Ints    map[int]string
	List    []document
	Any     any
	Float   float64
	Small   int8
	Next    *document
	At      time.Time
	Complex complex128
}

func newDocument() *document {
	return &document{
		Name: "变", Bytes: []byte("bytes\xff"), Fixed: [4]byte{1, 2, 3, 4}, Map: map[string]string{"k": "v"}, Ints: map[int]string{-1: "minus"},
		List: []document{{Name: "inner"}}, Any: shape{3}, Float: 1e300, Small: -3, Next: &document{Name: "next"}, At: time.Unix(5, 6).UTC(), Complex: 1 + 2i,
	}
}

// reckless panics on a peer's bytes.
type reckless struct{ A int }

func (*reckless) GobEncode() ([]byte, error) { return []byte("x"), nil }
func (*reckless) GobDecode([]byte) error     { panic("reckless") }

type tree struct{ Kids []*tree }

func encode(t testing.TB, v any) []byte {
	data, err := gob.New().Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// patched returns v's encoding with the last occurrence of a string replaced.
func patched(t testing.TB, v any, old, new string) []byte {
	data := encode(t, v)
	at := bytes.LastIndex(data, []byte(old))
	if at < 0 || len(old) != len(new) {
		t.Fatalf("%x does not have %x", data, old)
	}
	return append(append(bytes.Clone(data[:at]), new...), data[at+len(old):]...)
}

func hostile(t testing.TB) []codectest.Input {
	return []codectest.Input{
		{Name: "45 raw bytes to a struct", Data: []byte("some text"), Into: &document{}},
		{Name: "46 nothing", Data: nil, Into: &document{}},
		{Name: "47 slice of 2^31", Data: []byte("\x0c\xff\x81\x02\x01\x02\xff\x82\x00\x01\x04\x00\x00\x0a\xff\x82\x00\xfc\x80\x00\x00\x00\x02\x02\x02"), Into: &[]int{}},
		{Name: "48 map of 2^60", Data: []byte("\x0d\xff\x81\x04\x01\x02\xff\x82\x00\x01\x04\x01\x04\x00\x00\x0c\xff\x82\x00\xf8\x10\x00\x00\x00\x00\x00\x00\x00"), Into: &map[int]int{}},
		{Name: "50 bytes of 2 GiB", Data: []byte("\x08\x0a\x00\xfc\x80\x00\x00\x00x"), Into: &[]byte{}},
		{Name: "50 a message of 2 GiB", Data: []byte("\xfc\x80\x00\x00\x00\x0a\x00"), Into: &[]byte{}},
		{Name: "61 wrong type", Data: encode(t, new("text")), Into: &document{}},
		{Name: "61 string for a number", Data: encode(t, &struct{ Float string }{"x"}), Into: &document{}},
		{Name: "61 a type that is not registered", Data: patched(t, newDocument(), "gob_test.shape", "gob_test.shapf"), Into: &document{}},
		{Name: "62 a method that panics", Data: encode(t, &reckless{1}), Into: &reckless{}},
		{Name: "trailing garbage", Data: append(encode(t, new(5)), 0), Into: new(int)},
		{Name: "two values", Data: append(encode(t, new(5)), encode(t, new(6))...), Into: new(int)},
	}
}

func TestConformance(t *testing.T) {
	codectest.Run(t, codectest.Suite{
		Codec:   gob.New(),
		Values:  []any{newDocument(), &map[string]int{"a": 1}, &[]string{"a"}, new(7), new("text")},
		Misfits: []any{new(chan int), new(func()), benchpb.Filled(), "text"},
		Hostile: hostile(t),
	})
	if c := gob.New(); c.ID() != codec.GobID || c.Name() != "gob" {
		t.Error(c.ID(), c.Name())
	}
}

// A codec without Fits is not chosen by type.
func TestOnlyByName(t *testing.T) {
	if _, ok := any(gob.New()).(codec.Fitter); ok {
		t.Error("gob is chosen by type")
	}
}

// Each direction is compatible with encoding/gob itself.
func TestSameAsStandard(t *testing.T) {
	var b bytes.Buffer
	if err := stdgob.NewEncoder(&b).Encode(newDocument()); err != nil {
		t.Fatal(err)
	}
	got := new(document)
	if err := gob.New().Unmarshal(b.Bytes(), got); err != nil || got.Any != any(shape{3}) {
		t.Errorf("%+v, %v", got, err)
	}
	got = new(document)
	if err := stdgob.NewDecoder(bytes.NewReader(encode(t, newDocument()))).Decode(got); err != nil || got.Name != "变" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAppendRefusesWhatContainsItself(t *testing.T) {
	kid := &tree{}
	kid.Kids = []*tree{{}, kid}
	if _, err := gob.New().Append(nil, kid); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
		t.Error(err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(encode(f, newDocument()))
	for _, in := range hostile(f) {
		f.Add(in.Data)
	}
	codectest.Fuzz(f, gob.New(), &document{}, &tree{}, &map[string]int{}, &reckless{})
}

func BenchmarkPlain(b *testing.B) { codectest.Bench(b, gob.New(), benchpb.FilledPlain()) }
