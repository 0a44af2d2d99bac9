package protobuf_test

import (
	"testing"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/codec/protobuf/internal/testpb"
	"github.com/anser-rpc/anser/internal/benchpb"
	"google.golang.org/protobuf/proto"
)

// vtMessage is a message with vtproto's methods.
type vtMessage interface {
	proto.Message
	Reset()
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// spy counts the calls of vtproto's methods.
type spy struct {
	vtMessage
	marshals, unmarshals int
}

func (s *spy) MarshalToSizedBufferVT(b []byte) (int, error) {
	s.marshals++
	return s.vtMessage.MarshalToSizedBufferVT(b)
}

func (s *spy) UnmarshalVT(b []byte) error {
	s.unmarshals++
	return s.vtMessage.UnmarshalVT(b)
}

func TestSchemaGuard(t *testing.T) {
	for _, test := range []struct {
		m    vtMessage
		fast bool
	}{
		{benchpb.Filled(), true},
		{newNumbers(), true},
		{newTexts(), true},
		{newLegacy(), true},
		{newTree(3), true},
		{&testpb.Outer{}, true},
		{&testpb.Stamped{}, true},
		{&testpb.Loose{}, true},
		{&testpb.Grouped{}, false},
		{newExtended(), false},
		{&testpb.Holder{}, false},
		{&testpb.Delimited{}, false},
	} {
		s, c := &spy{vtMessage: test.m}, protobuf.New()
		data, err := c.Append(nil, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Unmarshal(data, s); err != nil {
			t.Fatal(err)
		}
		if fast := s.marshals == 1 && s.unmarshals == 1; fast != test.fast || s.marshals != s.unmarshals {
			t.Errorf("%T: vtproto's code ran %d and %d times, want it to run: %v", test.m, s.marshals, s.unmarshals, test.fast)
		}
	}
}

// shrinking is a message that is modified while it is being encoded.
type shrinking struct{ *benchpb.AddRequest }

// AnserProtobuf hides the method of the message, which would be preferred.
func (s shrinking) AnserProtobuf() {}

func (s shrinking) SizeVT() int { return s.AddRequest.SizeVT() + 1 }

func TestChangedWhileEncoded(t *testing.T) {
	if out, err := protobuf.New().Append(nil, &shrinking{&benchpb.AddRequest{A: 1}}); err == nil {
		t.Errorf("Append = %x, want an error", out)
	}
}

var (
	_ codec.Fitter = (*protobuf.Codec)(nil)
	_ codec.Fitter = (*protobuf.JSON)(nil)
)
