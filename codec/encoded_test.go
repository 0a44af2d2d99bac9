package codec_test

import (
	"encoding/json"
	"testing"

	"github.com/anser-rpc/anser/codec"
)

func TestEncoded(t *testing.T) {
	c := codec.Forwarding(codec.ProtobufID, "protobuf")
	data, err := c.Append([]byte("x"), &codec.Encoded{Codec: codec.ProtobufID, Data: []byte{8, 1}})
	if err != nil || string(data) != "x\x08\x01" {
		t.Errorf("%q, %v", data, err)
	}
	var out codec.Encoded
	in := []byte{8, 2}
	if err := c.Unmarshal(in, &out); err != nil || out.Codec != codec.ProtobufID || string(out.Data) != "\x08\x02" {
		t.Errorf("%+v, %v", out, err)
	}
	if in[0] = 9; out.Data[0] != 8 {
		t.Error("the message is not a copy")
	}
	for _, v := range []any{nil, (*codec.Encoded)(nil), new(int), &codec.Encoded{Codec: codec.JSONID}} {
		if data, err := c.Append([]byte("x"), v); err == nil || string(data) != "x" {
			t.Errorf("Append(%T): %q, %v", v, data, err)
		}
	}
	for _, v := range []any{nil, (*codec.Encoded)(nil), new(int)} {
		if err := c.Unmarshal([]byte("{}"), v); err == nil {
			t.Errorf("Unmarshal into %T", v)
		}
	}
}

// A message in JSON can be part of other JSON, and no other can.
func TestEncodedJSON(t *testing.T) {
	var list []codec.Encoded
	if err := json.Unmarshal([]byte(`[{"A": 7}, 8]`), &list); err != nil || len(list) != 2 || string(list[0].Data) != `{"A": 7}` {
		t.Fatalf("%+v, %v", list, err)
	}
	if text, err := json.Marshal(list); err != nil || string(text) != `[{"A":7},8]` {
		t.Errorf("%s, %v", text, err)
	}
	if text, err := json.Marshal(codec.Encoded{Codec: codec.ProtobufID}); err == nil {
		t.Errorf("%s", text)
	}
}
