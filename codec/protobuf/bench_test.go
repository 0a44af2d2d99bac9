package protobuf_test

import (
	"testing"

	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/codec/protobuf/internal/testpb"
	"github.com/anser-rpc/anser/internal/benchpb"
	"google.golang.org/protobuf/proto"
)

func TestAllocations(t *testing.T) {
	codectest.Ceiling(t, protobuf.New(), benchpb.Filled(), 0, 3)
	codectest.Ceiling(t, protobuf.New(protobuf.Separate()), benchpb.Filled(), 0, 48)
	codectest.Ceiling(t, protobuf.New(), &benchpb.AddRequest{A: 1, B: 2}, 0, 1)
	codectest.Ceiling(t, protobuf.New(), &testpb.Texts{One: "one", Far: "far"}, 0, 3)
}

func BenchmarkFast(b *testing.B) { codectest.Bench(b, protobuf.New(), benchpb.Filled()) }

// vtproto hides the generated code from the codec.
type vtproto struct{ *protobuf.Codec }

func (v vtproto) Append(dst []byte, m any) ([]byte, error) {
	return v.Codec.Append(dst, &spy{vtMessage: m.(vtMessage)})
}

func (v vtproto) Unmarshal(data []byte, m any) error {
	return v.Codec.Unmarshal(data, &spy{vtMessage: m.(vtMessage)})
}

func BenchmarkVTProto(b *testing.B) { codectest.Bench(b, vtproto{protobuf.New()}, benchpb.Filled()) }

func BenchmarkVTProtoTexts(b *testing.B) { codectest.Bench(b, vtproto{protobuf.New()}, newTexts()) }

// standard hides all methods from the codec.
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

// BenchmarkSmall measures mostly the codec's own overhead.
func BenchmarkSmall(b *testing.B) {
	codectest.Bench(b, protobuf.New(), &benchpb.AddRequest{A: 1, B: 2})
}

// BenchmarkBare measures vtproto without the codec.
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
