package protobuf_test

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/codec/protobuf/internal/testpb"
	"github.com/anser-rpc/anser/internal/benchpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestConformance(t *testing.T) {
	codectest.Run(t, codectest.Suite{
		Codec:   protobuf.New(),
		Values:  values(t),
		Misfits: []any{new(int), new([]byte), &struct{ A int }{1}, "text"},
		Hostile: hostile(),
		Equal:   equal,
	})
}

// TestUnknownFieldsAreBounded is row 58 of the threat model: every field is unknown, kept, and one
// byte of value.
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
// are handled like unknown fields.
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
	codectest.Fuzz(f, familiar{c}, values(f)...)
}

// familiar rejects messages with unknown fields. Such a field may have the number of a known one
// but another type, in a message decoded by the standard runtime; vtproto then rejects the message
// that was encoded from it.
type familiar struct{ *protobuf.Codec }

func (k familiar) Unmarshal(data []byte, v any) error {
	if err := k.Codec.Unmarshal(data, v); err != nil {
		return err
	}
	m := v.(proto.Message)
	all, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	without := m.ProtoReflect().New().Interface()
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(all, without); err != nil || proto.Size(without) != len(all) {
		return errors.New("it has unknown fields")
	}
	return nil
}

// FuzzSameAsStandard checks that a message that both accept is the same message, except for
// unknown fields: the standard runtime encodes their tags again, which shortens overlong ones.
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
