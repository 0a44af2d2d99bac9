package cbor_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/cbor"
	"github.com/anser-rpc/anser/codec/codectest/calltest"
)

// A call over TCP, with the codec chosen by type and by option.
func TestCall(t *testing.T) {
	calltest.Run(t, []codec.Codec{cbor.New()}, []anser.DialOption{anser.Codecs(cbor.New()), anser.Codec(cbor.New())}, newDocument(),
		func(out *document) bool { return out.Name == "变" && out.Big.BitLen() == 101 })
}
