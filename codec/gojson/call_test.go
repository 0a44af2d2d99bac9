package gojson_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest/calltest"
	"github.com/anser-rpc/anser/codec/gojson"
)

// A call over TCP, with the codec chosen by type and by option.
func TestCall(t *testing.T) {
	calltest.Run(t, []codec.Codec{gojson.New()}, []anser.DialOption{anser.Codecs(gojson.New()), anser.Codec(gojson.New())}, newDocument(),
		func(out *document) bool { return out.Large == 1<<64-1 })
}
