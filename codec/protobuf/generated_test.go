package protobuf_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/protobuf/internal/testpb"
	"github.com/anser-rpc/anser/codec/protobuf/pbrt"
	"github.com/anser-rpc/anser/internal/benchpb"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generatedTypes are the messages with generated code that the tests use.
func generatedTypes(tb testing.TB) []pbrt.Message {
	var list []pbrt.Message
	for _, file := range []protoreflect.FileDescriptor{
		testpb.File_codec_protobuf_internal_testpb_modern_proto, testpb.File_codec_protobuf_internal_testpb_legacy_proto,
		testpb.File_codec_protobuf_internal_testpb_edition_proto, benchpb.File_internal_benchpb_benchmark_proto,
	} {
		for i := range file.Messages().Len() {
			m := dynamic(tb, file.Messages().Get(i))
			if g, ok := m.(pbrt.Message); ok {
				list = append(list, g)
			} else {
				tb.Errorf("%s has no generated code", file.Messages().Get(i).FullName())
			}
		}
	}
	return list
}

// random returns a message with random fields.
func random(r *rand.Rand, empty protoreflect.Message, depth int) protoreflect.Message {
	m := empty.New()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		required := f.Cardinality() == protoreflect.Required
		if !required && r.IntN(3) == 0 || depth == 0 && f.Message() != nil && !required {
			continue
		}
		switch {
		case f.IsMap():
			values := m.Mutable(f).Map()
			for range r.IntN(4) {
				value := values.NewValue()
				if f.MapValue().Message() != nil {
					value = protoreflect.ValueOfMessage(random(r, value.Message(), depth-1))
				} else {
					value = scalar(r, f.MapValue())
				}
				values.Set(scalar(r, f.MapKey()).MapKey(), value)
			}
		case f.IsList():
			list := m.Mutable(f).List()
			for range r.IntN(5) {
				if f.Message() != nil {
					list.Append(protoreflect.ValueOfMessage(random(r, list.NewElement().Message(), depth-1)))
				} else {
					list.Append(scalar(r, f))
				}
			}
		case f.Message() != nil:
			m.Set(f, protoreflect.ValueOfMessage(random(r, m.NewField(f).Message(), depth-1)))
		default:
			m.Set(f, scalar(r, f))
		}
	}
	if r.IntN(4) == 0 {
		m.SetUnknown(protoreflect.RawFields{0xaa, 0xf8, 0x7f, 2, 'x', 'y'}) // a field that no message has
	}
	return m
}

func scalar(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	n := r.Uint64() >> r.IntN(64)
	if r.IntN(8) == 0 {
		n = 0
	}
	text := strings.Repeat([]string{"", "a", "é", "变", "long text "}[r.IntN(5)], r.IntN(20))
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 1)
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(int(n % uint64(values.Len()))).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n) / 3)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n) / 3)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text)
	}
	return protoreflect.ValueOfBytes([]byte(text))
}

var modes = map[string]pbrt.Mode{"shared": pbrt.Shared, "separate": pbrt.Separate, "borrow": pbrt.Borrow}

const testDepth = 100

// Random messages are the same after they were encoded by one and decoded by the other.
func TestGeneratedCodeOfRandomMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, empty := range generatedTypes(t) {
		for range 200 {
			m := random(r, empty.ProtoReflect(), 3).Interface()
			theirs, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			ours, err := pbrt.Append([]byte("before"), m.(pbrt.Message), testDepth)
			if err != nil || !bytes.HasPrefix(ours, []byte("before")) {
				t.Fatalf("encode %v: %v", m, err)
			}
			if ours = ours[6:]; len(ours) != len(theirs) {
				t.Fatalf("%T has %d bytes, %d by the standard library\n%v", m, len(ours), len(theirs), m)
			}
			back := empty.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(ours, back); err != nil || !proto.Equal(back, m) {
				t.Fatalf("our encoding becomes %v, %v\nwant %v", back, err, m)
			}
			for name, mode := range modes {
				data := bytes.Clone(theirs)
				back := empty.ProtoReflect().New().Interface()
				if err := pbrt.Unmarshal(data, back.(pbrt.Message), testDepth, mode); err != nil || !proto.Equal(back, m) {
					t.Fatalf("%s: the message becomes %v, %v\nwant %v", name, back, err, m)
				}
				if mode == pbrt.Borrow {
					continue
				}
				for i := range data {
					data[i] = 0xff
				}
				if !proto.Equal(back, m) {
					t.Fatalf("%s: %T refers to the bytes that it was decoded from", name, m)
				}
			}
		}
	}
}

// FuzzGeneratedCode checks that generated code takes the same bytes as the standard library, makes
// the same messages of them, unknown fields included, and encodes them in bytes that mean the same.
func FuzzGeneratedCode(f *testing.F) {
	types := generatedTypes(f)
	r := rand.New(rand.NewPCG(3, 4))
	for i, empty := range types {
		data, err := proto.Marshal(random(r, empty.ProtoReflect(), 2).Interface())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), data)
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		empty := types[int(which)%len(types)]
		theirs := empty.ProtoReflect().New().Interface()
		bad := proto.UnmarshalOptions{RecursionLimit: testDepth}.Unmarshal(data, theirs)
		for name, mode := range modes {
			ours := empty.ProtoReflect().New().Interface()
			err := pbrt.Unmarshal(data, ours.(pbrt.Message), testDepth, mode)
			if (err == nil) != (bad == nil) {
				t.Fatalf("%s: %T of %x: our error is %v, theirs %v", name, empty, data, err, bad)
			}
			if err != nil {
				continue
			}
			if !same(ours, theirs) {
				t.Fatalf("%s: %T of %x\nours   %v\ntheirs %v", name, empty, data, ours, theirs)
			}
			again, err := pbrt.Append(nil, ours.(pbrt.Message), testDepth)
			if err != nil {
				t.Fatalf("%s: %T of %x cannot be encoded: %v", name, empty, data, err)
			}
			back := empty.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(again, back); err != nil || !same(back, theirs) {
				t.Fatalf("%s: %T of %x is encoded as %x, which is %v, %v", name, empty, data, again, back, err)
			}
		}
	})
}

// same compares messages. For proto.Equal, NaN differs from itself in lists and maps alone if its
// bits differ, so deterministic encodings are compared, too.
func same(a, b proto.Message) bool {
	if proto.Equal(a, b) {
		return true
	}
	x, err := proto.MarshalOptions{Deterministic: true}.Marshal(a)
	if err != nil {
		return false
	}
	y, err := proto.MarshalOptions{Deterministic: true}.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}

// A field with another wire type than its own is an unknown field.
func TestOtherWireTypeIsUnknown(t *testing.T) {
	m := new(testpb.Texts)
	if err := pbrt.Unmarshal([]byte{8, 1}, m, testDepth, pbrt.Shared); err != nil || m.One != "" || len(m.ProtoReflect().GetUnknown()) != 2 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestDepthOfGeneratedCode(t *testing.T) {
	for _, depth := range []int{testDepth, testDepth + 1} {
		m := &testpb.Tree{}
		for range depth - 1 {
			m = &testpb.Tree{Kids: []*testpb.Tree{m}}
		}
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		deep := depth > testDepth
		if err := pbrt.Unmarshal(data, new(testpb.Tree), testDepth, pbrt.Shared); (err != nil) != deep {
			t.Errorf("decode %d levels: %v", depth, err)
		}
		if _, err := pbrt.Append(nil, m, testDepth); (err != nil) != deep {
			t.Errorf("encode %d levels: %v", depth, err)
		}
	}
}

// dynamic returns an empty message of the Go type.
func dynamic(tb testing.TB, d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		tb.Fatal(err)
	}
	return t.New().Interface()
}

// below calls f on a stack that n more bytes are in use of.
func below(n int, f func()) {
	if n > 0 {
		below(n-64, f) // a frame is about as large
		return
	}
	f()
}

// The stack moves when it grows, wherever that is.
func TestGeneratedCodeWhileTheStackGrows(t *testing.T) {
	bad := []byte{0x0a, 0x7f} // a string of which the bytes are missing
	for used := 0; used < 32<<10; used += 64 {
		done := make(chan error)
		go func() { // with a new stack
			below(used, func() { done <- pbrt.Unmarshal(bad, new(benchpb.BenchmarkMessage), 100, pbrt.Shared) })
		}()
		if <-done == nil {
			t.Fatalf("with %d bytes of the stack in use, an invalid message is decoded", used)
		}
	}
}
