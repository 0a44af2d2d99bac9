package flatbuffers_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	fb "github.com/google/flatbuffers/go"
	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/flatbuffers"
	"github.com/anser-rpc/anser/codec/flatbuffers/internal/testfb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func verifier(t testing.TB, table string) flatbuffers.Verifier {
	s, err := flatbuffers.ParseSchema(testfb.Schema)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func newCodec(t testing.TB, opts ...flatbuffers.Option) *flatbuffers.Codec {
	return flatbuffers.New(append(opts,
		flatbuffers.Object[testfb.Person, testfb.PersonT](verifier(t, "testfb.Person")),
		flatbuffers.Table[testfb.Address](verifier(t, "testfb.Address")))...)
}

func object() *testfb.PersonT {
	return &testfb.PersonT{
		Name: "变", Age: -7, Photo: []byte("photo\xff"), Names: []string{"a", "b"}, Scores: []int64{1, -1 << 60},
		Path: []*testfb.PointT{{X: 1, Y: 2}, {X: 3}}, Home: &testfb.AddressT{Street: "Main", Number: 5},
		Friends: []*testfb.PersonT{{Name: "Bob", Color: testfb.ColorBlue}, {Name: "Cem", Thing: &testfb.ThingT{Type: testfb.ThingPerson, Value: &testfb.PersonT{Name: "Dee"}}}},
		Thing:   &testfb.ThingT{Type: testfb.ThingAddress, Value: &testfb.AddressT{Street: "Side"}},
		Color:   testfb.ColorBlue, At: &testfb.PointT{X: 5}, Happy: true,
	}
}

func build(o interface {
	Pack(*fb.Builder) fb.UOffsetT
},
) []byte {
	b := fb.NewBuilder(0)
	b.Finish(o.Pack(b))
	return b.FinishedBytes()
}

func table() *testfb.Person { return testfb.GetRootAsPerson(build(object()), 0) }

// equal compares two messages by everything that can be read from them.
func equal(a, b any) bool {
	return slices.Equal(read(a), read(b))
}

func read(v any) []string {
	switch v := v.(type) {
	case *testfb.Person:
		return read(v.UnPack())
	case *testfb.Address:
		return []string{string(v.Street()), fmt.Sprint(v.Number())}
	case *testfb.PersonT:
		all := []string{v.Name, fmt.Sprint(v.Age, v.Scores, v.Color, v.Happy), string(v.Photo), strings.Join(v.Names, ",")}
		for _, p := range append(v.Path, v.At) {
			all = append(all, fmt.Sprintf("%+v", p))
		}
		if v.Home != nil {
			all = append(all, v.Home.Street)
		}
		if v.Thing != nil {
			all = append(all, fmt.Sprint(v.Thing.Type))
			if p, ok := v.Thing.Value.(*testfb.PersonT); ok {
				all = append(all, read(p)...)
			}
		}
		for _, f := range v.Friends {
			all = append(all, read(f)...)
		}
		return all
	}
	return nil
}

// chain returns a person with a chain of n friends.
func chain(n int) *testfb.PersonT {
	p := &testfb.PersonT{Name: "last"}
	for range n {
		p = &testfb.PersonT{Friends: []*testfb.PersonT{p}}
	}
	return p
}

// shared returns a vector that refers to the same friend many times, which refers to another one in
// the same way, and so on.
func shared(width, depth int) []byte {
	b := fb.NewBuilder(0)
	p := (&testfb.PersonT{Name: "last"}).Pack(b)
	for range depth {
		testfb.PersonStartFriendsVector(b, width)
		for range width {
			b.PrependUOffsetT(p)
		}
		v := b.EndVector(width)
		testfb.PersonStart(b)
		testfb.PersonAddFriends(b, v)
		p = testfb.PersonEnd(b)
	}
	b.Finish(p)
	return b.FinishedBytes()
}

// broken changes four bytes of a person, at a position derived from its contents.
func broken(t testing.TB, at func(p *testfb.Person) fb.UOffsetT, value uint32) []byte {
	p := table()
	data := p.Table().Bytes
	binary.LittleEndian.PutUint32(data[at(p):], value)
	return data
}

// slot returns the position of a field in the table.
func slot(n int) func(p *testfb.Person) fb.UOffsetT {
	return func(p *testfb.Person) fb.UOffsetT {
		t := p.Table()
		return t.Pos + fb.UOffsetT(t.Offset(fb.VOffsetT(4+2*n)))
	}
}

// target returns the position that a field refers to.
func target(n int) func(p *testfb.Person) fb.UOffsetT {
	return func(p *testfb.Person) fb.UOffsetT {
		t := p.Table()
		return t.Indirect(slot(n)(p))
	}
}

func hostile(t testing.TB) []codectest.Input {
	withoutStreet := func() []byte {
		b := fb.NewBuilder(0)
		testfb.AddressStart(b)
		a := b.EndObject()
		b.Finish(a)
		return b.FinishedBytes()
	}()
	endless := bytes.Clone(build(&testfb.PersonT{Name: "x"}))
	endless[len(endless)-3] = 'x' // in place of the string's terminating zero
	root := func(p *testfb.Person) fb.UOffsetT { return 0 }
	vtable := func(p *testfb.Person) fb.UOffsetT { return p.Table().Pos }
	var all []codectest.Input
	for name, data := range map[string][]byte{
		"45 raw bytes":                         []byte("some text that is not a table"),
		"46 nothing":                           nil,
		"64a the root beyond the buffer":       broken(t, root, 1<<20),
		"64a the root at the end":              broken(t, root, uint32(len(table().Table().Bytes)-2)),
		"64a the root at 2^32 - 1":             broken(t, root, 1<<32-1),
		"64a the vtable beyond the buffer":     broken(t, vtable, 1<<31),
		"64a the vtable before the buffer":     broken(t, vtable, 1<<30),
		"64a a string beyond the buffer":       broken(t, slot(0), 1<<20),
		"64a a string at 2^32 - 1":             broken(t, slot(0), 1<<32-1),
		"64a a string of 2^31":                 broken(t, target(0), 1<<31),
		"64a a string of 2^32 - 1":             broken(t, target(0), 1<<32-1),
		"64a bytes of 2^31":                    broken(t, target(2), 1<<31),
		"64a 2^30 strings":                     broken(t, target(3), 1<<30),
		"64a 2^29 + 1 longs":                   broken(t, target(4), 1<<29+1),
		"64a 2^32 - 1 structs":                 broken(t, target(5), 1<<32-1),
		"64a a table beyond the buffer":        broken(t, slot(6), 1<<20),
		"64a a table that is none":             broken(t, target(6), 1<<29),
		"64a 2^30 tables":                      broken(t, target(7), 1<<30),
		"64a a union beyond the buffer":        broken(t, slot(9), 1<<20),
		"57 text that is not UTF-8":            build(&testfb.PersonT{Name: "\xff"}),
		"57 a string without an end":           endless,
		"49 65 levels":                         build(chain(64)),
		"49 1,000 levels":                      build(chain(1000)),
		"58 parts that are shared without end": shared(10, 20),
		"58 parts that are shared very often":  shared(2000, 3),
	} {
		for _, into := range []any{&testfb.Person{}, &testfb.PersonT{}} {
			all = append(all, codectest.Input{Name: fmt.Sprintf("%s into %T", name, into), Data: data, Into: into})
		}
	}
	return append(all, codectest.Input{Name: "61 a required field", Data: withoutStreet, Into: &testfb.Address{}})
}

func TestConformance(t *testing.T) {
	c := newCodec(t)
	codectest.Run(t, codectest.Suite{
		Codec:   c,
		Values:  []any{table(), object(), testfb.GetRootAsAddress(build(&testfb.AddressT{Street: "Main"}), 0)},
		Misfits: []any{new(int), &struct{ A int }{1}, new([]byte), "text"},
		Hostile: hostile(t),
		Equal:   equal,
	})
	if c.ID() != codec.FlatBuffersID || c.Name() != "flatbuffers" {
		t.Error(c.ID(), c.Name())
	}
}

// Everything in a buffer that passes the verifier can be read.
func TestWhatIsVerifiedCanBeRead(t *testing.T) {
	c, data := newCodec(t), table().Table().Bytes
	accepted := 0
	for i := range data {
		for _, b := range []byte{0, 1, 2, 4, 8, 0x7f, 0x80, 0xff} {
			bad := bytes.Clone(data)
			bad[i] = b
			p := new(testfb.Person)
			if c.Unmarshal(bad, p) == nil {
				read(p)
				accepted++
			}
		}
	}
	if accepted == 0 {
		t.Error("nothing was accepted")
	}
}

func TestBothSidesKnowTheDepth(t *testing.T) {
	c := newCodec(t)
	if err := c.Unmarshal(build(chain(flatbuffers.MaxDepth-1)), new(testfb.Person)); err != nil {
		t.Error(err)
	}
	p := object()
	p.Friends = append(p.Friends, p)
	if _, err := c.Append(nil, p); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
		t.Error("an object that contains itself:", err)
	}
}

func TestBuilder(t *testing.T) {
	c, b := newCodec(t), fb.NewBuilder(0)
	if _, err := c.Append(nil, b); err == nil {
		t.Error("a builder that is not finished was sent")
	}
	b.Finish(object().Pack(b))
	data, err := c.Append([]byte("before"), b)
	got := new(testfb.Person)
	if err != nil || c.Unmarshal(data[len("before"):], got) != nil || !equal(got, object()) {
		t.Errorf("%v", err)
	}
	if _, err := c.Append(nil, got.Home(nil)); err == nil || !strings.Contains(err.Error(), "not the root") {
		t.Error("a table inside of another was sent:", err)
	}
}

// With Borrow a table refers to the bytes it was decoded from.
func TestBorrow(t *testing.T) {
	for borrow, c := range map[bool]*flatbuffers.Codec{true: newCodec(t, flatbuffers.Borrow()), false: newCodec(t)} {
		data, p := table().Table().Bytes, new(testfb.Person)
		if err := c.UnmarshalBorrowed(data, p); err != nil {
			t.Fatal(err)
		}
		if shares := &p.Table().Bytes[0] == &data[0]; shares != borrow {
			t.Errorf("it points into the data: %t, want %t", shares, borrow)
		}
		if n := testing.AllocsPerRun(100, func() { c.UnmarshalBorrowed(data, p) }); borrow && n > 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestOnlyWhatHasAVerifier(t *testing.T) {
	c := flatbuffers.New()
	if err := c.Unmarshal(table().Table().Bytes, new(testfb.Person)); err == nil || !strings.Contains(err.Error(), "pass flatbuffers.Table") {
		t.Error(err)
	}
	own := flatbuffers.New(flatbuffers.Table[testfb.Person](func([]byte) error { return errors.New("not mine") }))
	if err := own.Unmarshal(nil, new(testfb.Person)); err == nil || !strings.Contains(err.Error(), "not mine") {
		t.Error(err)
	}
	if c.Fits(new(testfb.Person)) || !own.Fits(new(testfb.Person)) {
		t.Error("Fits says otherwise")
	}
	// A verifier that accepts everything fails its call, not the process.
	blind := flatbuffers.New(flatbuffers.Object[testfb.Person, testfb.PersonT](func([]byte) error { return nil }))
	if err := blind.Unmarshal([]byte("ab"), new(testfb.PersonT)); err == nil {
		t.Error("two bytes are a person")
	}
}

func TestSchema(t *testing.T) {
	s, err := flatbuffers.ParseSchema(testfb.Schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Table("testfb.Point"); err == nil || !strings.Contains(err.Error(), `it has ["testfb.Address" "testfb.Person"]`) {
		t.Error(err)
	}
	for _, bad := range [][]byte{nil, []byte("some text"), testfb.Schema[:40], append([]byte("\xff\xff\xff\xff"), testfb.Schema[4:]...)} {
		if _, err := flatbuffers.ParseSchema(bad); err == nil || !strings.Contains(err.Error(), "flatc -b --schema") {
			t.Error(err)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(table().Table().Bytes)
	for _, in := range hostile(f) {
		if len(in.Data) < 2000 {
			f.Add(in.Data)
		}
	}
	codectest.Fuzz(f, newCodec(f), &testfb.Person{}, &testfb.PersonT{})
}

func BenchmarkTable(b *testing.B)  { codectest.Bench(b, newCodec(b), table()) }
func BenchmarkObject(b *testing.B) { codectest.Bench(b, newCodec(b), object()) }
