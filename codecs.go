package anser

import (
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/codec/protobuf"
)

// The codecs that every client and server has. They are shared: a codec analyses each type once.
var (
	sharedMsgpack  = msgpack.New()
	sharedProtobuf = protobuf.New()
	sharedJSON     = protobuf.NewJSON()
)
