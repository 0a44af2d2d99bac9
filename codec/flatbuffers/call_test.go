package flatbuffers_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest/calltest"
	"github.com/anser-rpc/anser/codec/flatbuffers"
	"github.com/anser-rpc/anser/codec/flatbuffers/internal/testfb"
)

// A call over TCP, with the codec chosen by type and by option.
func TestCall(t *testing.T) {
	calltest.Run(t, []codec.Codec{newCodec(t, flatbuffers.Borrow())}, []anser.DialOption{
		anser.Codecs(newCodec(t, flatbuffers.Borrow())),
		anser.Codec(newCodec(t, flatbuffers.Borrow())),
	}, table(),
		func(out *testfb.Person) bool { return equal(out, object()) })
}
