package gob_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest/calltest"
	"github.com/anser-rpc/anser/codec/gob"
)

// A call over TCP, with the codec set by an option.
func TestCall(t *testing.T) {
	calltest.Run(t, []codec.Codec{gob.New()}, []anser.DialOption{anser.Codec(gob.New())}, newDocument(),
		func(out *document) bool { return out.Any == any(shape{3}) })
}
