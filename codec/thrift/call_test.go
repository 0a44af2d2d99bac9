package thrift_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest/calltest"
	"github.com/anser-rpc/anser/codec/thrift"
	"github.com/anser-rpc/anser/codec/thrift/internal/testthrift"
)

// A call over TCP, with the codec chosen by type and by option.
func TestCall(t *testing.T) {
	calltest.Run(t, []codec.Codec{thrift.Binary(), thrift.Compact()}, []anser.DialOption{anser.Codecs(thrift.Binary()), anser.Codec(thrift.Compact())}, person(),
		func(out *testthrift.Person) bool { return out.Home.Street == "Main" })
}
