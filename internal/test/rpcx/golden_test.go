package rpcx_test

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smallnest/rpcx/codec"
	"github.com/smallnest/rpcx/protocol"
)

var update = flag.Bool("update", false, "write the golden files")

type (
	Args  struct{ A, B int }
	Reply struct{ C int }
)

// messages are what stock rpcx sends.
func messages(t *testing.T) map[string]*protocol.Message {
	t.Helper()
	encode := func(c codec.Codec, v any) []byte {
		b, err := c.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	message := func(seq uint64, s protocol.SerializeType, payload []byte) *protocol.Message {
		m := protocol.NewMessage()
		m.SetSeq(seq)
		m.SetSerializeType(s)
		m.ServicePath, m.ServiceMethod, m.Payload = "Arith", "Mul", payload
		return m
	}
	all := map[string]*protocol.Message{
		"request":   message(7, protocol.MsgPack, encode(codec.MsgpackCodec{}, &Args{7, 8})),
		"json":      message(8, protocol.JSON, encode(codec.JSONCodec{}, &Args{7, 8})),
		"oneway":    message(9, protocol.MsgPack, encode(codec.MsgpackCodec{}, &Args{7, 8})),
		"heartbeat": message(10, protocol.MsgPack, encode(codec.MsgpackCodec{}, int64(1700000000))),
		"gzip":      message(11, protocol.JSON, encode(codec.JSONCodec{}, strings.Repeat("x", 2000))),
		"reply":     message(7, protocol.MsgPack, encode(codec.MsgpackCodec{}, &Reply{56})),
		"error":     message(12, protocol.MsgPack, nil),
	}
	all["request"].Metadata = map[string]string{"tenant": "blue"}
	all["oneway"].SetOneway(true)
	all["heartbeat"].SetHeartbeat(true)
	all["heartbeat"].ServicePath, all["heartbeat"].ServiceMethod = "", ""
	all["gzip"].SetCompressType(protocol.Gzip)
	all["reply"].SetMessageType(protocol.Response)
	all["reply"].Metadata = map[string]string{"served": "yes"}
	all["error"].SetMessageType(protocol.Response)
	all["error"].SetMessageStatusType(protocol.Error)
	all["error"].ServiceMethod = "Div"
	all["error"].Metadata = map[string]string{protocol.ServiceError: "rpcx: can't find method Div"}
	return all
}

// The golden files of package rpcxwire are what stock rpcx writes.
func TestGolden(t *testing.T) {
	for name, m := range messages(t) {
		path := filepath.Join("..", "..", "..", "protocols", "internal", "rpcxwire", "testdata", name+".hex")
		got := hex.EncodeToString(m.Encode()) + "\n"
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is\n%s, and the file has\n%s", name, got, want)
		}
	}
}
