package gobwire_test

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/anser-rpc/anser/internal/gobwire"
)

const limit = 1 << 20

// These values contain everything that gob supports.
type (
	inner struct{ X int }
	node  struct {
		V    int
		Next *node
	}
	everything struct {
		Bool    bool
		Int     int64
		Uint    uint8
		Float   float64
		Complex complex128
		Bytes   []byte
		Text    string
		Array   [3]int16
		Bools   [2]bool
		Slice   []inner
		Deep    [][]map[string][]inner
		Map     map[string]inner
		Keys    map[inner]*inner
		Any     any
		Anys    []any
		AnyMap  map[string]any
		List    *node
		Own     moody
		Last    string
	}
)

func init() {
	for _, v := range []any{inner{}, &node{}, map[string]any{}, []any{}, everything{}, moody{}, []inner{}} {
		gob.Register(v)
	}
}

// values are written to one stream, so that later ones lack the definitions of earlier ones.
func values() []any {
	list := &node{V: 1, Next: &node{V: 2, Next: &node{V: 3}}}
	return []any{
		everything{},
		7, -1, "text", []byte("bytes"), 1.5, 2 + 3i, true, uint64(math.MaxUint64), int64(math.MinInt64),
		moody{"good"},
		[]inner{{1}, {2}},
		map[string]int{"a": 1},
		[2]string{"x", "y"},
		list,
		everything{
			Bool: true, Int: -5, Uint: 200, Float: math.Inf(1), Complex: 1i, Bytes: make([]byte, 300), Text: strings.Repeat("é", 500),
			Array: [3]int16{1, 0, -3}, Bools: [2]bool{true, false}, Slice: []inner{{0}, {1}},
			Deep: [][]map[string][]inner{{{"a": {{1}, {2}}}, {}}, {}}, Map: map[string]inner{"m": {9}, "": {}}, Keys: map[inner]*inner{{1}: {2}},
			Any:    inner{4},
			Anys:   []any{inner{5}, nil, "s", 7, []any{inner{6}, map[string]any{"deep": moody{"good"}}}, []byte("b")},
			AnyMap: map[string]any{"list": list, "nested": everything{Any: everything{AnyMap: map[string]any{"z": inner{1}}}}},
			List:   list, Own: moody{"good"}, Last: "end",
		},
		everything{Any: map[string]any{"again": []inner{{7}}}, Last: "end"},
		struct{}{},
	}
}

func encode(t testing.TB, values ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := gob.NewEncoder(&b)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			t.Fatalf("%T: %v", v, err)
		}
	}
	return b.Bytes()
}

func read(r io.Reader) (*gobwire.Reader, *gob.Decoder) {
	g := gobwire.NewReader(bufio.NewReader(r))
	return g, gob.NewDecoder(g)
}

func TestReaderGivesWhatGobGives(t *testing.T) {
	all := values()
	stream := encode(t, all...)
	plain := gob.NewDecoder(bytes.NewReader(stream))
	g, dec := read(iotest.OneByteReader(bytes.NewReader(stream)))
	for i, v := range all {
		if err := g.Next(limit); err != nil {
			t.Fatalf("value %d, %T: %v", i, v, err)
		}
		want, got := reflect.New(reflect.TypeOf(v)), reflect.New(reflect.TypeOf(v))
		if err := g.Admit(got.Interface()); err != nil {
			t.Fatalf("value %d, %T: %v", i, v, err)
		}
		if err := errors.Join(plain.DecodeValue(want), dec.DecodeValue(got)); err != nil {
			t.Fatalf("value %d, %T: %v", i, v, err)
		}
		if !reflect.DeepEqual(want.Interface(), got.Interface()) {
			t.Errorf("value %d: got %+v, want %+v", i, got, want)
		}
	}
	if err := g.Next(limit); err != io.EOF {
		t.Errorf("at the end: %v, want EOF", err)
	}
}

// Gob skips a field unknown to the receiver, an interface by its length.
func TestReaderWithUnknownFields(t *testing.T) {
	full := values()[15].(everything)
	withNil := full
	full.Anys = append(full.Anys[:1:1], full.Anys[2:]...)
	g, dec := read(bytes.NewReader(encode(t, full, withNil, full)))
	for i := range 3 {
		if err := g.Next(limit); err != nil {
			t.Fatal(err)
		}
		var got struct{ Last string }
		if i == 1 {
			// Gob misreads a nil interface that it skips, and loses its position.
			if err := g.Admit(&got); err == nil {
				t.Error("a nil interface in a field that is unknown is admitted")
			}
			g.Drop()
			continue
		}
		if err := g.Admit(&got); err != nil {
			t.Fatal(err)
		}
		if err := dec.Decode(&got); err != nil || got.Last != "end" {
			t.Fatal(got, err)
		}
	}
}

func TestReaderDrops(t *testing.T) {
	all := values()
	stream := encode(t, all[15], inner{1}, all[15], all[16], "text")
	g, dec := read(bytes.NewReader(stream))
	for i := range 5 {
		if err := g.Next(limit); err != nil {
			t.Fatal(i, err)
		}
		if i != 3 {
			g.Drop()
			continue
		}
		var got everything
		if err := dec.Decode(&got); err != nil || !reflect.DeepEqual(got, all[16]) {
			t.Fatal(got, err)
		}
	}
}

func TestReaderLimit(t *testing.T) {
	const small = 500
	stream := encode(t, make([]byte, small-10), make([]byte, small), []inner{{1}}, strings.Repeat("x", 100_000), "end")
	g, dec := read(bytes.NewReader(stream))
	for i, fits := range []bool{true, false, true, false, true} {
		err := g.Next(small)
		var large *gobwire.TooLargeError
		if fits && err != nil || !fits && !errors.As(err, &large) {
			t.Fatalf("value %d: %v", i, err)
		}
		if large != nil && (large.Limit != small || large.Size < small) {
			t.Errorf("value %d: %+v", i, large)
		}
		if fits {
			if err := dec.DecodeValue(reflect.Value{}); err != nil {
				t.Fatal(i, err)
			}
		}
	}
	// If the end of a value is unknown, the stream ends.
	g, _ = read(bytes.NewReader(encode(t, everything{Text: strings.Repeat("x", 600)}, "end")))
	if err := g.Next(small); err == nil {
		t.Error("a value over the limit passes")
	}
	if err := g.Next(small); err == nil || err == io.EOF {
		t.Errorf("after a broken value: %v", err)
	}
	// The parts of a value count together.
	long := strings.Repeat("x", 300)
	g, _ = read(bytes.NewReader(encode(t, everything{Text: long, Any: inner{1}, Last: long}, "end")))
	if err := g.Next(small); err == nil {
		t.Error("a value over the limit passes in parts")
	}
}

type (
	sendsTwo struct {
		A struct{ M map[int]int }
		B struct{ S string }
	}
	hasOne struct{ A, B struct{ M map[int]int } }

	sendsAlike struct {
		A []time.Duration
		B []int64
		C map[string]fits
		D map[string]struct{ A, B int }
	}
	hasAlike struct {
		A, B []int64
		C, D map[string]fits
	}

	sendsMore struct {
		Skipped []any
		M       map[int]int
		S       string
	}
	hasLess struct {
		M map[int]int
		S string
	}
)

// Gob reads the second field like the first, and would read the text as a map with 2^60 elements.
func TestOneTypeForTwo(t *testing.T) {
	var v sendsTwo
	v.A.M = map[int]int{1: 1}
	v.B.S = "\xf8\x10\x00\x00\x00\x00\x00\x00\x00"
	g, _ := read(bytes.NewReader(encode(t, v, v)))
	for _, target := range []any{new(hasOne), new(sendsTwo)} {
		if err := g.Next(limit); err != nil {
			t.Fatal(err)
		}
		err := g.Admit(target)
		if _, honest := target.(*sendsTwo); honest != (err == nil) {
			t.Errorf("%T: %v", target, err)
		}
		g.Drop()
	}
	// Types with the same layout do no harm.
	alike := sendsAlike{A: []time.Duration{1}, B: []int64{2}, C: map[string]fits{"c": {3, 4}}, D: map[string]struct{ A, B int }{"d": {5, 6}}}
	g, dec := read(bytes.NewReader(encode(t, alike)))
	var got hasAlike
	if err := errors.Join(g.Next(limit), g.Admit(&got), dec.Decode(&got)); err != nil {
		t.Fatal(err)
	}
	if want := (hasAlike{A: []int64{1}, B: []int64{2}, C: map[string]fits{"c": {3, 4}}, D: map[string]fits{"d": {5, 6}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The same within an interface, whose type only gob knows.
func TestExceptionsWithinInterfaces(t *testing.T) {
	var two sendsTwo
	two.A.M = map[int]int{1: 1}
	two.B.S = "x"
	more := sendsMore{Skipped: []any{nil}, M: map[int]int{1: 1}, S: "x"}
	gob.RegisterName("send.two", two)
	gob.RegisterName("recv.two", hasOne{})
	gob.RegisterName("send.more", more)
	gob.RegisterName("recv.more", hasLess{})
	for _, v := range []any{two, more} {
		for _, honest := range []bool{true, false} {
			stream := encode(t, struct{ V any }{v})
			if !honest {
				stream = bytes.Replace(stream, []byte("send."), []byte("recv."), 1)
			}
			g, dec := read(bytes.NewReader(stream))
			var got struct{ V any }
			if err := g.Next(limit); err != nil {
				t.Fatal(err)
			}
			if err := g.Admit(&got); honest != (err == nil) {
				t.Errorf("%T, honest is %v: %v", v, honest, err)
			}
			if !honest {
				continue
			}
			if err := dec.Decode(&got); err != nil || !reflect.DeepEqual(got.V, v) {
				t.Errorf("got %+v, %v", got, err)
			}
		}
	}
}

// Every prefix of a stream is an error, never a value.
func TestReaderTruncated(t *testing.T) {
	stream := encode(t, values()[15])
	for n := range stream {
		g, _ := read(bytes.NewReader(stream[:n]))
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if err := g.Next(limit); err != want {
			t.Fatalf("%d bytes: %v, want %v", n, err, want)
		}
	}
}

// message prepends the length to the bytes.
func message(b ...byte) []byte { return append([]byte{byte(len(b))}, b...) }

// The definitions of map[int]int, []this, struct{This}, and what carries them, with the id 64.
var (
	defineMap       = message(0x7f, 4, 2, 1, 4, 0, 1, 4, 0, 0)
	defineRecursive = message(0x7f, 2, 2, 1, 4, 0, 0xff, 0x80, 0)
)

func TestHostileStreams(t *testing.T) {
	// The definition of a map: id -64, wireType{MapT: {CommonType{Name, Id}, Key, Elem}}.
	mapType := []byte{0x7f, 4, 1, 2, 0xff, 0x80, 0, 1, 4, 1, 4, 0, 0}
	sliceOfItself := []byte{0x7f, 2, 1, 2, 0xff, 0x80, 0, 1, 0xff, 0x80, 0, 0}
	structOfItself := []byte{0x7f, 3, 1, 2, 0xff, 0x80, 0, 1, 1, 2, 0xff, 0x80, 0, 0, 0}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	nested := func(head []byte, levels int, b, end byte) []byte {
		body := join(head, bytes.Repeat([]byte{b}, levels), []byte{end})
		n := len(body)
		return join([]byte{0xfd, byte(n >> 16), byte(n >> 8), byte(n)}, body)
	}
	for name, stream := range map[string][]byte{
		"a map of 2^62":              join(message(mapType...), message(0xff, 0x80, 0, 0xf8, 0x40, 0, 0, 0, 0, 0, 0, 0)),
		"a map of 2^31":              join(message(mapType...), message(0xff, 0x80, 0, 0xfc, 0x80, 0, 0, 0)),
		"a slice of 2^30":            join(message(0x7f, 2, 1, 2, 0xff, 0x80, 0, 1, 4, 0, 0), message(0xff, 0x80, 0, 0xfc, 0x40, 0, 0, 0, 2)),
		"a slice in itself":          join(message(sliceOfItself...), nested([]byte{0xff, 0x80, 0}, 500_000, 1, 0)),
		"a struct in itself":         join(message(structOfItself...), nested([]byte{0xff, 0x80}, 500_000, 1, 0)),
		"2 kinds":                    message(0x7f, 2, 1, 2, 0xff, 0x80, 0, 1, 4, 0, 2, 1, 2, 0xff, 0x80, 0, 1, 4, 1, 4, 0, 0),
		"a type twice":               join(message(mapType...), message(mapType...)),
		"a reserved type":            message(append([]byte{0x21}, mapType[1:]...)...),
		"an undefined type":          message(0xff, 0x90, 0, 1),
		"gob's own type":             message(0x20, 0),
		"a negative array":           message(0x7f, 1, 1, 2, 0xff, 0x80, 0, 1, 4, 1, 1, 0, 0),
		"a length of 9 bytes":        {0xf7, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"a length of 2^63":           {0xf8, 0x80, 0, 0, 0, 0, 0, 0, 0},
		"a length of 4 GiB, stopped": {0xfb, 1, 0, 0, 0, 0, 4},
		"an empty message":           {0},
		"more after a definition":    message(append(append([]byte(nil), mapType...), 1)...),
		"an HTTP request":            []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + strings.Repeat("x", 200)),
		"a TLS greeting":             {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
		"JSON":                       []byte(`{"method":"Arith.Add","params":[{"A":1,"B":2}],"id":1}` + strings.Repeat(" ", 100)),
		"a definition of 2 MiB":      join([]byte{0xfd, 0x20, 0, 0, 0x7f}, make([]byte, 2<<20)),
		"endless fields":             message(0x7f, 3, 1, 2, 0xff, 0x80, 0, 1, 0xfc, 0xff, 0xff, 0xff, 0xff, 0, 0),
		"a field beyond":             join(message(structOfItself...), message(0xff, 0x80, 2, 0)),
		"a field far beyond":         join(message(structOfItself...), message(0xff, 0x80, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)),
		"a struct without its end":   join(message(structOfItself...), message(0xff, 0x80)),
		"a type's number of 64 bits": message(0xf8, 1, 0, 0, 0, 0, 0, 0, 0x80, 0),
	} {
		t.Run(name, func(t *testing.T) {
			g, dec := read(bytes.NewReader(stream))
			grown := allocated(func() {
				if err := g.Next(4 << 20); err == nil {
					t.Errorf("it passes; gob says %v", dec.DecodeValue(reflect.Value{}))
				}
			})
			if grown > 8<<20 {
				t.Errorf("it took %d bytes of memory", grown)
			}
		})
	}
}

// An unlimited number of types is rejected before it fills the memory.
func TestTooManyTypes(t *testing.T) {
	var stream []byte
	for id := 64; id < 64+20_000; id++ {
		n := 2*id - 1
		stream = append(stream, message(0xfd, byte(n>>16), byte(n>>8), byte(n), 2, 1, 0, 1, 4, 0, 0)...)
	}
	g, _ := read(bytes.NewReader(stream))
	if err := g.Next(limit); err == nil || !strings.Contains(err.Error(), "types") {
		t.Errorf("got %v", err)
	}
}

func FuzzReader(f *testing.F) {
	for _, v := range values() {
		f.Add(encode(f, v))
	}
	f.Add(append(append([]byte(nil), defineMap...), message(0xff, 0x80, 0, 1, 2, 2)...))
	f.Add(append(append([]byte(nil), defineRecursive...), message(0xff, 0x80, 0, 1, 1, 0)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, target := range []any{new(struct{ Last string }), new(everything), new(map[string]any), new([]inner), new(node)} {
			g, dec := read(bytes.NewReader(data))
			for range 100 {
				err := g.Next(64 << 10)
				var large *gobwire.TooLargeError
				if errors.As(err, &large) {
					continue
				}
				if err != nil {
					break
				}
				// Any result of gob is acceptable, as long as it does not crash.
				if g.Admit(target) == nil {
					gobwire.Guard(func() error { return dec.Decode(target) })
				}
				g.Done()
			}
		}
	})
}
