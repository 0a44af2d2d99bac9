package cbor_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/cbor"
	"github.com/anser-rpc/anser/codec/codectest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type document struct {
	Name  string `cbor:"name"`
	Bytes []byte
	Fixed [4]byte
	Map   map[string]string
	Ints  map[int]string
	List  []document
	Any   any
	Float float64
	Small int8
	Next  *document
	At    time.Time
	Big   *big.Int
	Func  func() `cbor:"-"`
	Embedded
}

type Embedded struct{ Promoted string }

func newDocument() *document {
	return &document{
		Name: "变", Bytes: []byte("bytes\xff"), Fixed: [4]byte{1, 2, 3, 4}, Map: map[string]string{"k": "v"},
		Ints: map[int]string{-1: "minus", 70000: "large"}, List: []document{{Name: "inner", At: time.Unix(1, 0).UTC()}},
		Any:   map[any]any{"x": []any{1.5, "two", nil, true, []byte("bin"), uint64(7), int64(-7)}},
		Float: 1e300, Small: -3, Next: &document{Name: "next", At: time.Unix(1<<33, 5).UTC()}, At: time.Unix(5, 6).UTC(),
		Big: new(big.Int).Lsh(big.NewInt(1), 100), Embedded: Embedded{"promoted"},
	}
}

type loop struct{ *Loop2 }

type Loop2 struct{ *Loop2 }

// reckless panics on a peer's bytes.
type reckless struct{ A int }

func (*reckless) MarshalCBOR() ([]byte, error) { return []byte{1}, nil }
func (*reckless) UnmarshalCBOR([]byte) error   { panic("reckless") }

type generated struct{ A int }

func (*generated) ProtoMessage() {}

func hostile() []codectest.Input {
	in := func(name, data string, into any) codectest.Input {
		return codectest.Input{Name: name, Data: []byte(data), Into: into}
	}
	var all []codectest.Input
	for name, data := range map[string]string{
		"46 nothing":                        "",
		"47 array of 2^31":                  "\x9a\x80\x00\x00\x00",
		"47 array of 2^63":                  "\x9b\x80\x00\x00\x00\x00\x00\x00\x00",
		"47 array of 65,535":                "\x99\xff\xff\x01",
		"48 map of 2^31":                    "\xba\x80\x00\x00\x00",
		"48 map of 2^64 - 1":                "\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
		"49 100,000 arrays":                 strings.Repeat("\x81", 100000) + "\x01",
		"49 100,000 maps":                   strings.Repeat("\xa1\x01", 100000) + "\x01",
		"49 100,000 tags":                   strings.Repeat("\xc1", 100000) + "\x01",
		"49 100,000 arrays without lengths": strings.Repeat("\x9f", 100000),
		"50 bytes of 2 GiB":                 "\x5a\x80\x00\x00\x00x",
		"50 text of 2^64 - 1":               "\x7b\xff\xff\xff\xff\xff\xff\xff\xffx",
		"52 a key twice":                    "\xa2\x61a\x01\x61a\x02",
		"57 text that is not UTF-8":         "\x61\xff",
		"trailing garbage":                  "\xf6\xf6",
		"a reserved length":                 "\x1c",
		"a break alone":                     "\xff",
	} {
		for _, into := range []any{new(any), &document{}, new([]any), new(map[string]any), new([]byte), new(string), new([]struct{})} {
			all = append(all, in(name, data, into))
		}
	}
	return append(all,
		in("45 raw bytes to a struct", "some text", &document{}),
		in("52 a key twice, known", "\xa2\x64name\x61a\x64name\x61b", &document{}),
		in("61 text for a number", "\xa1\x65Float\x61x", &document{}),
		in("61 number out of range", "\xa1\x65Small\x18\xff", &document{}),
		in("61 array as a key", "\xa1\x80\x01", new(any)),
		in("62 a method that panics", "\x01", &reckless{}),
	)
}

func TestConformance(t *testing.T) {
	whatever := any([]any{"a", uint64(1), nil})
	codectest.Run(t, codectest.Suite{
		Codec:   cbor.New(),
		Values:  []any{newDocument(), &whatever, &map[string]int{"a": 1}, &[]string{"a"}, new(int), &[]byte{1, 2, 3}, new(big.Int)},
		Misfits: []any{new(chan int), new(func()), &generated{1}, make(chan int), new(struct{ E error }), new(loop)},
		Hostile: hostile(),
	})
}

func TestIdentity(t *testing.T) {
	if c := cbor.New(); c.ID() != codec.CBORID || c.Name() != "cbor" {
		t.Error(c.ID(), c.Name())
	}
}

// The bytes are those of the examples in RFC 8949.
func TestGolden(t *testing.T) {
	c := cbor.New()
	for want, v := range map[string]any{
		"\x00":                                 new(int),
		"\x1b\xff\xff\xff\xff\xff\xff\xff\xff": new(uint64(1<<64 - 1)),
		"\x83\x01\x02\x03":                     &[]int{1, 2, 3},
		"\x64IETF":                             new("IETF"),
		"\xa1\x61A\x01":                        &struct{ A int }{1},
		"\x44\x01\x02\x03\x04":                 &[]byte{1, 2, 3, 4},
		"\xf5":                                 new(true),
		"\x74" + "2013-03-21T20:04:00Z":        new(time.Date(2013, 3, 21, 20, 4, 0, 0, time.UTC)),
	} {
		if got, err := c.Append(nil, v); err != nil || string(got) != want {
			t.Errorf("%T: % x, %v, want % x", v, got, err, want)
		}
	}
}

type tree struct {
	Kids []*tree
	Any  any
}

func TestAppendRefusesWhatContainsItself(t *testing.T) {
	kid := &tree{}
	kid.Kids = []*tree{{}, kid}
	m := map[string]any{}
	m["m"] = m
	for _, v := range []any{kid, &m} {
		if _, err := cbor.New().Append(nil, v); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
			t.Errorf("Append(%T) = %v", v, err)
		}
	}
}

func TestBothSidesTakeTheSameDepth(t *testing.T) {
	c, v := cbor.New(), any(nil)
	for n := range 70 {
		data, err := c.Append(nil, &v)
		var got any
		if (err == nil) != (n <= cbor.MaxDepth) {
			t.Errorf("%d levels: %v", n, err)
		}
		if err == nil && c.Unmarshal(data, &got) != nil {
			t.Errorf("%d levels were written and cannot be read", n)
		}
		v = []any{v}
	}
}

func FuzzUnmarshal(f *testing.F) {
	c := cbor.New()
	data, err := c.Append(nil, newDocument())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, in := range hostile() {
		if len(in.Data) < 100 {
			f.Add(in.Data)
		}
	}
	codectest.Fuzz(f, c, &document{}, &tree{}, new(any), new(map[string]any), new([]string), &reckless{})
}

func BenchmarkPlain(b *testing.B) { codectest.Bench(b, cbor.New(), newDocument()) }
