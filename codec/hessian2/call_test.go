package hessian2_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest/calltest"
)

// A call over TCP, with the codec chosen by type and by option.
func TestCall(t *testing.T) {
	calltest.Run(t, []codec.Codec{newCodec()}, []anser.DialOption{anser.Codecs(newCodec()), anser.Codec(newCodec())}, newUser(),
		func(out *user) bool { return out.Friends[1].Home.Street == "Side" })
}
