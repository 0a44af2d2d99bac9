package protobuf_test

import (
	"bytes"
	"testing"

	"github.com/anser-rpc/anser/codec/codectest"
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

// values returns messages that vtproto supports, and messages that it does not.
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

// lengthDelimited returns a field with these bytes as its value.
func lengthDelimited(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// wrapped returns n levels of nested messages, in fields with alternating numbers.
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
		{Name: "required field missing where a map has no value", Data: append(lengthDelimited(1, nil), lengthDelimited(4, []byte{8, 1})...), Into: &testpb.Legacy{}},
		{Name: "required field of a part missing", Data: append(lengthDelimited(1, nil), lengthDelimited(2, nil)...), Into: &testpb.Legacy{}},
	}
}
