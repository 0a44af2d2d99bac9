package msgpack_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/internal/benchpb"
)

type document struct {
	Name   string `msgpack:"name"`
	Bytes  []byte `msgpack:"bytes"`
	Fixed  [4]byte
	Named  namedBytes
	Map    map[string]string
	Ints   map[int]string
	List   []document
	Any    any
	Float  float64
	Small  int8
	Next   *document
	At     time.Time
	Floats [2]float32
	_      chan int
	Func   func() `msgpack:"-"`
	Embedded
}

type namedBytes []byte

type Embedded struct{ Promoted string }

func newDocument() *document {
	return &document{
		Name: "变", Bytes: []byte("bytes\xff"), Fixed: [4]byte{1, 2, 3, 4}, Named: namedBytes("named"),
		Map: map[string]string{"k": "v"}, Ints: map[int]string{-1: "minus", 70000: "large"},
		List: []document{{Name: "inner", At: time.Unix(1, 0).UTC()}}, Any: map[any]any{"x": []any{1.5, "two", nil, true, []byte("bin")}},
		Float: 1e300, Small: -3, Next: &document{Name: "next", At: time.Unix(1<<40, 0).UTC()}, At: time.Unix(5, 6).UTC(),
		Floats: [2]float32{1, 2}, Embedded: Embedded{"promoted"},
	}
}

// list has methods like msgp's: the slice is allocated with its declared length.
type list struct{ items []uint32 }

func (l *list) MarshalMsg(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(len(l.items)))
	for _, n := range l.items {
		b = binary.BigEndian.AppendUint32(append(b, 0xce), n)
	}
	return b, nil
}

func (l *list) UnmarshalMsg(b []byte) ([]byte, error) {
	if len(b) < 5 || b[0] != 0xdd {
		return b, errors.New("not an array32")
	}
	l.items = make([]uint32, binary.BigEndian.Uint32(b[1:]))
	b = b[5:]
	for i := range l.items {
		if b[0] != 0xce {
			return b, errors.New("not a uint32")
		}
		l.items[i], b = binary.BigEndian.Uint32(b[1:]), b[5:]
	}
	return b, nil
}

// lazy leaves the rest of its input unread.
type lazy struct{ list }

func (l *lazy) UnmarshalMsg(b []byte) ([]byte, error) { return b, nil }

func repeat(s string, n int, end string) []byte { return []byte(strings.Repeat(s, n) + end) }

func listOf(n int) *list {
	l := &list{items: make([]uint32, n)}
	for i := range l.items {
		l.items[i] = uint32(i)
	}
	return l
}

func hostile() []codectest.Input {
	declared := map[string]string{
		"47 array32 of 2^31":                     "\xdd\x80\x00\x00\x00",
		"47 array32 of 2^32 - 1":                 "\xdd\xff\xff\xff\xff",
		"47 array16 of 65,535":                   "\xdc\xff\xff\xc0",
		"48 map32 of 2^31":                       "\xdf\x80\x00\x00\x00",
		"48 map32 of 2^32 - 1":                   "\xdf\xff\xff\xff\xff",
		"48 map16 of 65,535":                     "\xde\xff\xff\xc0",
		"50 bin32 of 2 GiB":                      "\xc6\x80\x00\x00\x00x",
		"50 bin32 of 4 GiB":                      "\xc6\xff\xff\xff\xffx",
		"50 ext32 of 2 GiB":                      "\xc9\x80\x00\x00\x00\x01x",
		"50 ext32 of 4 GiB":                      "\xc9\xff\xff\xff\xff\x01x",
		"50 str32 of 2 GiB":                      "\xdb\x80\x00\x00\x00x",
		"51 fixext4 cut":                         "\xd6\xff\x00",
		"51 fixext8 without anything":            "\xd7",
		"51 fixext16 cut":                        "\xd8\x01" + strings.Repeat("x", 15),
		"51 ext8 cut":                            "\xc7\x0c\xff\x00",
		"51 timestamp with too many nanoseconds": "\xd7\xff\xff\xff\xff\xff\x00\x00\x00\x00",
		"46 nothing":                             "",
		"46 a length cut":                        "\xdd\x00\x00",
		"the code that means nothing":            "\xc1",
		"trailing garbage":                       "\xc0\xc0",
		"47 array of arrays that are not there":  "\xdc\x00\x02\xdd\x00\x00\x00\x02\xdd\x00\x00\x00\x02",
		"49 100,000 arrays":                      strings.Repeat("\x91", 100000) + "\xc0",
		"49 100,000 maps":                        strings.Repeat("\x81\x01", 100000) + "\xc0",
		"49 65 arrays":                           strings.Repeat("\x91", 64) + "\x90",
		"49 never ends":                          strings.Repeat("\xdd\x00\x00\x00\x01", 100000),
		"57 string that is not UTF-8":            "\xa1\xff",
		"57 str32 that is not UTF-8":             "\xdb\x00\x00\x00\x01\xff",
	}
	var inputs []codectest.Input
	for name, data := range declared {
		for _, into := range []any{new(any), &document{}, new([]any), new(map[string]any), new(map[any]any), new([]byte), new(string), &list{}, new([]struct{})} {
			inputs = append(inputs, codectest.Input{Name: fmt.Sprintf("%s into %T", name, into), Data: []byte(data), Into: into})
		}
	}
	slices.SortFunc(inputs, func(a, b codectest.Input) int { return strings.Compare(a.Name, b.Name) })
	return append(inputs,
		codectest.Input{Name: "45 raw bytes to a struct", Data: []byte("some text"), Into: &document{}},
		codectest.Input{Name: "49 recursive type", Data: repeat("\x81\xa4Next", 100000, "\xc0"), Into: &document{}},
		codectest.Input{Name: "61 string for a number", Data: []byte("\x81\xa5Float\xa1x"), Into: &document{}},
		codectest.Input{Name: "61 bin for a list of structs", Data: []byte("\x81\xa4List\xc4\x01x"), Into: &document{}},
		codectest.Input{Name: "61 array for a struct", Data: []byte("\x90"), Into: &document{}},
		codectest.Input{Name: "61 too many bytes for an array", Data: []byte("\x81\xa5Fixed\xc4\x05xxxxx"), Into: &document{}},
		codectest.Input{Name: "61 bin as a key", Data: []byte("\x81\xc4\x01x\x01"), Into: new(any)},
		codectest.Input{Name: "61 array as a key", Data: []byte("\x81\x90\x01"), Into: new(any)},
		codectest.Input{Name: "61 array as a key of any", Data: []byte("\x81\x90\x01"), Into: new(map[any]any)},
		codectest.Input{Name: "61 unknown extension", Data: []byte("\xd4\x05\x00"), Into: new(any)},
		codectest.Input{Name: "62 generated code that panics", Data: []byte("\xdd\x00\x00\x00\x01\xce\x00\x00\x00\x00")[:6], Into: &list{}},
		codectest.Input{Name: "bytes that generated code leaves", Data: []byte("\xc0"), Into: &lazy{}},
	)
}

func TestConformance(t *testing.T) {
	var whatever any = map[any]any{"a": []any{"x", uint8(1), []byte("bin")}}
	plain := benchpb.FilledPlain()
	plain.Field5 = []uint64{1, math.MaxUint64}
	texts := []string{"a", ""}
	codectest.Run(t, codectest.Suite{
		Codec: msgpack.New(),
		Values: []any{
			newDocument(), plain, listOf(3), &whatever, &texts, new(int), &[]byte{1},
			&map[string]any{"x": []byte("y")}, &struct{ C complex128 }{3i},
		},
		Misfits: []any{
			new(chan int), new(func()), new(uintptr), benchpb.Filled(), new([]*benchpb.AddRequest), &struct{ E error }{errors.New("x")},
			new(loop),
		},
		Hostile: hostile(),
	})
}

// loop embeds itself: shamaton would collect its fields forever.
type loop struct{ *Loop2 }

type Loop2 struct{ *Loop2 }

func TestStringsInBinAreCopied(t *testing.T) {
	data := []byte("\xc4\x03abc")
	var s string
	if err := msgpack.New().Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	copy(data[2:], "xyz")
	if s != "abc" {
		t.Errorf("the string changed with the data: %q", s)
	}
	data, whatever := []byte("\x91\xc4\x03abc"), any(nil)
	if err := msgpack.New().Unmarshal(data, &whatever); err != nil {
		t.Fatal(err)
	}
	copy(data[3:], "xyz")
	if got := whatever.([]any)[0].([]byte); string(got) != "abc" {
		t.Errorf("the bytes changed with the data: %q", got)
	}
	data, b := []byte("\xa3abc"), []byte(nil)
	if err := msgpack.New().Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	copy(data[1:], "xyz")
	if string(b) != "abc" {
		t.Errorf("the bytes of a string changed with the data: %q", b)
	}
}

type tree struct {
	Parent *tree `msgpack:"-"`
	Kids   []*tree
	Any    any
}

func TestAppendRefusesWhatContainsItself(t *testing.T) {
	c := msgpack.New()
	kid := &tree{}
	kid.Kids = []*tree{{}, kid}
	held := &tree{}
	held.Any = []any{held}
	m := map[string]any{}
	m["m"] = m
	for _, v := range []any{kid, held, &m} {
		if _, err := c.Append(nil, v); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
			t.Errorf("Append(%T) = %v", v, err)
		}
	}
	// A reference back that is not encoded does no harm.
	root := &tree{Kids: []*tree{{}}}
	root.Kids[0].Parent = root
	if _, err := c.Append(nil, root); err != nil {
		t.Error(err)
	}
}

func TestBothSidesTake64Levels(t *testing.T) {
	c := msgpack.New()
	v := any(nil)
	for range 64 {
		v = []any{v}
	}
	data, err := c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := c.Unmarshal(data, &got); err != nil {
		t.Error(err)
	}
	v = []any{v}
	if _, err := c.Append(nil, &v); err == nil {
		t.Error("wrote what nobody would read")
	}
}

func TestAppendRefusesWhatIsNotUTF8(t *testing.T) {
	s := "\xff"
	if _, err := msgpack.New().Append(nil, &s); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Error(err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	_, err := msgpack.New().Append(nil, benchpb.Filled())
	if err == nil || !strings.Contains(err.Error(), "use the protobuf codec") {
		t.Error(err)
	}
	_, err = msgpack.New().Append(nil, &struct{ A []chan int }{})
	if err == nil || !strings.Contains(err.Error(), `field A[]: there is no MessagePack for chan int: leave it out with the tag msgpack:"-"`) {
		t.Error(err)
	}
}

func TestAllocations(t *testing.T) {
	codectest.Ceiling(t, msgpack.New(), benchpb.FilledPlain(), 2, 10)
	codectest.Ceiling(t, msgpack.New(), listOf(100), 0, 2)
}

func FuzzUnmarshal(f *testing.F) {
	c := msgpack.New()
	for _, v := range []any{newDocument(), benchpb.FilledPlain(), listOf(3)} {
		data, err := c.Append(nil, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, in := range hostile() {
		if len(in.Data) < 100 {
			f.Add(bytes.Clone(in.Data))
		}
	}
	codectest.Fuzz(f, c, &document{}, &list{}, &tree{}, new(any), new(map[string]any), new([]string), new([][]byte), new(map[any]any), new(complex64))
}

func BenchmarkPlain(b *testing.B) { codectest.Bench(b, msgpack.New(), benchpb.FilledPlain()) }

func BenchmarkGenerated(b *testing.B) { codectest.Bench(b, msgpack.New(), listOf(100)) }
