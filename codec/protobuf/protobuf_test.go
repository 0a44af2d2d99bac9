package protobuf_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/codec/protobuf/internal/testpb"
	"github.com/anser-rpc/anser/internal/benchpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func equal(a, b any) bool { return proto.Equal(a.(proto.Message), b.(proto.Message)) }

func newTexts() *testpb.Texts {
	return &testpb.Texts{
		One: "one", Many: []string{"two", "", "变"}, Map: map[string]string{"k": "v"},
		Choice: &testpb.Texts_Text{Text: "chosen"}, Maybe: proto.String(""),
		Inner:  &testpb.Texts_Inner{Text: "inner", Numbers: newNumbers()},
		Inners: map[int32]*testpb.Texts_Inner{1: {Text: "x"}}, List: []*testpb.Texts_Inner{{}, {Text: "y"}},
		Far: "far", Bytes: []byte("\xff\xfe"),
	}
}

func newNumbers() *testpb.Numbers {
	return &testpb.Numbers{A: -1, B: []int64{1, -2}, C: 3.5, D: []byte("\xff"), E: map[int32]bool{1: true}, F: []uint32{1, 2}}
}

func newLegacy() *testpb.Legacy {
	part := func(id int32) *testpb.Legacy_Part { return &testpb.Legacy_Part{Id: &id, Data: []byte("data")} }
	return &testpb.Legacy{
		Name: proto.String("not UTF-8: \xff"), Part: part(1), Parts: []*testpb.Legacy_Part{part(2), part(3)},
		Map: map[int32]*testpb.Legacy_Part{4: part(4)}, Choice: &testpb.Legacy_Chosen{Chosen: part(5)},
	}
}

func newExtended() *testpb.Extended {
	m := &testpb.Extended{Id: proto.Int32(1)}
	proto.SetExtension(m, testpb.E_Nickname, "ext")
	return m
}

func newTree(depth int) *testpb.Tree {
	tree := &testpb.Tree{Value: 1}
	for range depth - 1 {
		tree = &testpb.Tree{Kids: []*testpb.Tree{tree}}
	}
	return tree
}

// values are messages that vtproto handles, and messages that it does not.
func values(t testing.TB) []any {
	value, err := structpb.NewStruct(map[string]any{"a": []any{1, "x", nil, map[string]any{"b": true}}})
	if err != nil {
		t.Fatal(err)
	}
	grouped := &testpb.Grouped{Thing: &testpb.Grouped_Thing{Id: proto.Int32(1)}, After: proto.Int32(2)}
	return []any{
		benchpb.Filled(), &benchpb.AddRequest{A: 1, B: 2}, &benchpb.AddReply{},
		newNumbers(), newTexts(), newLegacy(), newTree(5), newExtended(), grouped,
		&testpb.Outer{Texts: []*testpb.Texts{newTexts()}, Numbers: newNumbers()},
		&testpb.Stamped{At: timestamppb.New(timestamppb.Now().AsTime()), Id: []byte("id")},
		&testpb.Holder{Extended: newExtended(), Grouped: map[int32]*testpb.Grouped{1: grouped}},
		&testpb.Loose{Strict: proto.String("strict"), Loose: proto.String("\xff")},
		&testpb.Delimited{Loose: &testpb.Loose{Loose: proto.String("\xff")}},
		value,
	}
}

// lengthDelimited returns a field whose value is the bytes.
func lengthDelimited(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// wrapped returns n levels of messages in one another's fields, whose numbers take turns.
func wrapped(n int, numbers ...protowire.Number) []byte {
	b := []byte{}
	for i := range n {
		b = lengthDelimited(numbers[i%len(numbers)], b)
	}
	return b
}

func hostile() []codectest.Input {
	bad := []byte("\xff")
	node := structpb.NewListValue(&structpb.ListValue{})
	for range 60 { // each is two messages
		node = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{node}})
	}
	deepValue, _ := proto.Marshal(node)
	return []codectest.Input{
		{Name: "46 nothing, fields required", Data: nil, Into: &benchpb.BenchmarkMessage{}},
		{Name: "54 depth 101", Data: wrapped(100, 2), Into: &testpb.Tree{}},
		{Name: "54 depth 10,000", Data: wrapped(10000, 2), Into: &testpb.Tree{}},
		{Name: "54 depth 10,000 through a map", Data: wrapped(10000, 2, 3), Into: &testpb.Tree{}},
		{Name: "54 depth 120, standard runtime", Data: deepValue, Into: &structpb.Value{}},
		{Name: "54 groups 20,000 deep, unknown", Data: bytes.Repeat([]byte{0xa3, 0x06}, 20000), Into: &testpb.Numbers{}},
		{Name: "55 varint of 11 bytes", Data: append([]byte{8}, bytes.Repeat([]byte{0x80}, 11)...), Into: &testpb.Numbers{}},
		{Name: "55 tag of 11 bytes", Data: bytes.Repeat([]byte{0x80}, 11), Into: &testpb.Numbers{}},
		{Name: "55 varint of 11 bytes in Texts", Data: append([]byte{0x28}, bytes.Repeat([]byte{0x80}, 11)...), Into: &testpb.Texts{}},
		{Name: "56 string of 2^31", Data: []byte{0x0a, 0x80, 0x80, 0x80, 0x80, 8, 'x'}, Into: &testpb.Texts{}},
		{Name: "56 bytes of 2^31", Data: []byte{0x22, 0x80, 0x80, 0x80, 0x80, 8, 'x'}, Into: &testpb.Numbers{}},
		{Name: "56 bytes of 2^63", Data: append([]byte{0x22}, protowire.AppendVarint(nil, 1<<63)...), Into: &testpb.Numbers{}},
		{Name: "56 packed of 2^31", Data: []byte{0x12, 0x80, 0x80, 0x80, 0x80, 8, 1}, Into: &testpb.Numbers{}},
		{Name: "56 packed fixed of 2^31", Data: []byte{0x32, 0x80, 0x80, 0x80, 0x80, 8, 1}, Into: &testpb.Numbers{}},
		{Name: "56 message of 2^31", Data: []byte{0x12, 0x80, 0x80, 0x80, 0x80, 8, 1}, Into: &testpb.Legacy{}},
		{Name: "57 text", Data: lengthDelimited(1, bad), Into: &testpb.Texts{}},
		{Name: "57 text in a list", Data: lengthDelimited(2, bad), Into: &testpb.Texts{}},
		{Name: "57 text as a key", Data: lengthDelimited(3, lengthDelimited(1, bad)), Into: &testpb.Texts{}},
		{Name: "57 text in a map", Data: lengthDelimited(3, lengthDelimited(2, bad)), Into: &testpb.Texts{}},
		{Name: "57 text in a oneof", Data: lengthDelimited(4, bad), Into: &testpb.Texts{}},
		{Name: "57 optional text", Data: lengthDelimited(6, bad), Into: &testpb.Texts{}},
		{Name: "57 text in a message", Data: lengthDelimited(7, lengthDelimited(1, bad)), Into: &testpb.Texts{}},
		{Name: "57 text in a message in a map", Data: lengthDelimited(8, lengthDelimited(2, lengthDelimited(1, bad))), Into: &testpb.Texts{}},
		{Name: "57 text with a large number", Data: lengthDelimited(5000, bad), Into: &testpb.Texts{}},
		{Name: "57 text two levels down", Data: lengthDelimited(1, lengthDelimited(7, lengthDelimited(1, bad))), Into: &testpb.Outer{}},
		{Name: "57 text in an edition", Data: lengthDelimited(1, bad), Into: &testpb.Loose{}},
		{Name: "61 wrong type of a field", Data: []byte{8, 1}, Into: &testpb.Texts{}},
		{Name: "required field missing where a map has no value", Data: append(lengthDelimited(1, nil), lengthDelimited(4, []byte{8, 1})...), Into: &testpb.Legacy{}},
		{Name: "required field of a part missing", Data: append(lengthDelimited(1, nil), lengthDelimited(2, nil)...), Into: &testpb.Legacy{}},
	}
}

func TestConformance(t *testing.T) {
	codectest.Run(t, codectest.Suite{
		Codec:   protobuf.New(),
		Values:  values(t),
		Misfits: []any{new(int), new([]byte), &struct{ A int }{1}, "text"},
		Hostile: hostile(),
		Equal:   equal,
	})
}

// TestUnknownFieldsAreBounded is row 58: every field is unknown, kept, and one byte of value.
func TestUnknownFieldsAreBounded(t *testing.T) {
	data := bytes.Repeat([]byte{0xa0, 0x06, 0x01}, 100000)
	for _, m := range []proto.Message{&testpb.Numbers{}, &testpb.Texts{}, &structpb.Struct{}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := protobuf.New().Unmarshal(data, m)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 10*uint64(len(data)) {
			t.Errorf("%T: %d bytes for %d", m, used, len(data))
		}
		if !bytes.Equal(m.ProtoReflect().GetUnknown(), data) {
			t.Errorf("%T: unknown fields were lost", m)
		}
	}
}

func TestDepth100(t *testing.T) {
	c := protobuf.New()
	data, err := c.Append(nil, newTree(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Unmarshal(data, new(testpb.Tree)); err != nil {
		t.Error(err)
	}
	if _, err := c.Append(nil, newTree(101)); err == nil {
		t.Error("wrote what nobody would read")
	}
}

func TestAppendRefusesWhatIsNotUTF8(t *testing.T) {
	c, bad := protobuf.New(), "\xff"
	inner := &testpb.Texts_Inner{Text: bad}
	for _, m := range []proto.Message{
		&testpb.Texts{One: bad},
		&testpb.Texts{Many: []string{"", bad}},
		&testpb.Texts{Map: map[string]string{bad: ""}},
		&testpb.Texts{Map: map[string]string{"": bad}},
		&testpb.Texts{Choice: &testpb.Texts_Text{Text: bad}},
		&testpb.Texts{Inner: inner},
		&testpb.Texts{Inners: map[int32]*testpb.Texts_Inner{1: inner}},
		&testpb.Texts{List: []*testpb.Texts_Inner{{}, inner}},
		&testpb.Texts{Far: bad},
		&testpb.Outer{Texts: []*testpb.Texts{{One: bad}}},
		&testpb.Loose{Strict: &bad},
		structpb.NewStringValue(bad),
	} {
		if _, err := c.Append(nil, m); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("Append(%T) = %v", m, err)
		}
	}
}

func TestAppendRequiresRequiredFields(t *testing.T) {
	c := protobuf.New()
	for _, m := range []proto.Message{
		&benchpb.BenchmarkMessage{},
		&testpb.Legacy{},
		&testpb.Legacy{Name: proto.String(""), Part: &testpb.Legacy_Part{}},
		&testpb.Legacy{Name: proto.String(""), Parts: []*testpb.Legacy_Part{{}}},
		&testpb.Legacy{Name: proto.String(""), Map: map[int32]*testpb.Legacy_Part{1: {}}},
		&testpb.Legacy{Name: proto.String(""), Choice: &testpb.Legacy_Chosen{Chosen: &testpb.Legacy_Part{}}},
	} {
		if _, err := c.Append(nil, m); err == nil || !strings.Contains(err.Error(), "required") {
			t.Errorf("Append(%v) = %v", m, err)
		}
	}
}

func TestUnmarshalResets(t *testing.T) {
	c := protobuf.New()
	for _, v := range values(t) {
		data, err := c.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		m := proto.Clone(v.(proto.Message))
		if err := c.Unmarshal(data, m); err != nil || !equal(v, m) {
			t.Errorf("decoding into a used %T: %v\ngot  %v\nwant %v", v, err, m, v)
		}
	}
}

// TestSameAsStandard compares both directions with the standard runtime.
func TestSameAsStandard(t *testing.T) {
	c := protobuf.New()
	for _, v := range values(t) {
		m := v.(proto.Message)
		ours, err := c.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		got := m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(ours, got); err != nil || !proto.Equal(got, m) {
			t.Errorf("%T: the standard runtime reads our bytes as %v, %v", v, got, err)
		}
		theirs, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got = m.ProtoReflect().New().Interface()
		if err := c.Unmarshal(theirs, got); err != nil || !proto.Equal(got, m) {
			t.Errorf("%T: we read the standard runtime's bytes as %v, %v", v, got, err)
		}
	}
}

// TestUnusualMaps has entries without a value or key, and with values of another wire type, which
// are like fields that are not known.
func TestUnusualMaps(t *testing.T) {
	c := protobuf.New()
	for _, test := range []struct {
		data []byte
		want proto.Message
	}{
		{lengthDelimited(3, []byte{8, 1}), &testpb.Tree{Map: map[int32]*testpb.Tree{1: {}}}},
		{lengthDelimited(3, nil), &testpb.Tree{Map: map[int32]*testpb.Tree{0: {}}}},
		{lengthDelimited(8, []byte{8, 1}), &testpb.Texts{Inners: map[int32]*testpb.Texts_Inner{1: {}}}},
		{lengthDelimited(3, lengthDelimited(2, []byte("v"))), &testpb.Texts{Map: map[string]string{"": "v"}}},
		{lengthDelimited(3, lengthDelimited(1, []byte("k"))), &testpb.Texts{Map: map[string]string{"k": ""}}},
		{lengthDelimited(3, []byte{8, 1}), &testpb.Texts{Map: map[string]string{"": ""}}},
		{lengthDelimited(5, append([]byte{8, 1}, lengthDelimited(2, []byte("\x10\x01"))...)), &testpb.Numbers{E: map[int32]bool{1: false}}},
	} {
		got := test.want.ProtoReflect().New().Interface()
		if err := c.Unmarshal(test.data, got); err != nil || !proto.Equal(got, test.want) {
			t.Errorf("%T of %x = %v, %v, want %v", got, test.data, got, err, test.want)
		}
		if m, ok := got.(*testpb.Tree); ok && (m.Map[0] == nil) == (m.Map[1] == nil) {
			t.Errorf("a nil pointer in %v", m)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	_, err := protobuf.New().Append(nil, new(int))
	if err == nil || !strings.Contains(err.Error(), "*int: it is not a proto.Message") {
		t.Error(err)
	}
	err = protobuf.New().Unmarshal(nil, (*testpb.Texts)(nil))
	if err == nil || !strings.Contains(err.Error(), "*testpb.Texts: it is nil: pass a message") {
		t.Error(err)
	}
}

func TestAllocations(t *testing.T) {
	codectest.Ceiling(t, protobuf.New(), benchpb.Filled(), 0, 48)
	codectest.Ceiling(t, protobuf.New(), &benchpb.AddRequest{A: 1, B: 2}, 0, 1)
	codectest.Ceiling(t, protobuf.New(), &testpb.Texts{One: "one", Far: "far"}, 0, 3)
}

func FuzzUnmarshal(f *testing.F) {
	c := protobuf.New()
	for _, v := range values(f) {
		data, err := c.Append(nil, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, in := range hostile() {
		if len(in.Data) < 1000 {
			f.Add(in.Data)
		}
	}
	codectest.Fuzz(f, c, values(f)...)
}

// FuzzSameAsStandard checks that a message that both accept is the same message, apart from unknown
// fields: the standard runtime writes their tags anew, so that long forms of them become short.
func FuzzSameAsStandard(f *testing.F) {
	c := protobuf.New()
	for _, v := range values(f) {
		data, err := c.Append(nil, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	samples := values(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range samples {
			ours, theirs := v.(proto.Message).ProtoReflect().New().Interface(), v.(proto.Message).ProtoReflect().New().Interface()
			if c.Unmarshal(data, ours) != nil || proto.Unmarshal(data, theirs) != nil {
				continue
			}
			if ours, theirs := known(t, ours), known(t, theirs); !proto.Equal(ours, theirs) {
				t.Errorf("%T of %x\nours   %v\ntheirs %v", v, data, ours, theirs)
			}
		}
	})
}

// known returns m without its unknown fields.
func known(t *testing.T, m proto.Message) proto.Message {
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func BenchmarkFast(b *testing.B) { codectest.Bench(b, protobuf.New(), benchpb.Filled()) }

// standard hides vtproto's methods from the codec.
type standard struct{ *protobuf.Codec }

func (s standard) Append(dst []byte, v any) ([]byte, error) {
	return s.Codec.Append(dst, struct{ proto.Message }{v.(proto.Message)})
}

func (s standard) Unmarshal(data []byte, v any) error {
	return s.Codec.Unmarshal(data, struct{ proto.Message }{v.(proto.Message)})
}

func BenchmarkStandard(b *testing.B) {
	codectest.Bench(b, standard{protobuf.New()}, benchpb.Filled())
}

func BenchmarkFastTexts(b *testing.B) { codectest.Bench(b, protobuf.New(), newTexts()) }

func BenchmarkStandardTexts(b *testing.B) {
	codectest.Bench(b, standard{protobuf.New()}, newTexts())
}

// BenchmarkSmall is mostly what the codec itself costs.
func BenchmarkSmall(b *testing.B) {
	codectest.Bench(b, protobuf.New(), &benchpb.AddRequest{A: 1, B: 2})
}

// BenchmarkBare is vtproto without a codec around it.
func BenchmarkBare(b *testing.B) {
	b.Run("filled", func(b *testing.B) { bare(b, benchpb.Filled()) })
	b.Run("small", func(b *testing.B) { bare(b, &benchpb.AddRequest{A: 1, B: 2}) })
}

func bare[T any, P interface {
	*T
	vtMessage
}](b *testing.B, m P) {
	data := make([]byte, m.SizeVT())
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			if _, err := m.MarshalToSizedBufferVT(data[:m.SizeVT()]); err != nil {
				b.Fatal(err)
			}
		}
	})
	if _, err := m.MarshalToSizedBufferVT(data); err != nil {
		b.Fatal(err)
	}
	b.Run("unmarshal", func(b *testing.B) {
		for b.Loop() {
			if err := P(new(T)).UnmarshalVT(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
