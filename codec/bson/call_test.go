package bson_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/bson"
	"github.com/anser-rpc/anser/codec/codectest/calltest"
)

// A call over TCP, with the codec chosen by type and by option.
func TestCall(t *testing.T) {
	calltest.Run(t, []codec.Codec{bson.New()}, []anser.DialOption{anser.Codecs(bson.New()), anser.Codec(bson.New())}, newDocument(),
		func(out *document) bool { return out.Name == "变" })
}
