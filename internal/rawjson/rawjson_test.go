package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/rawjson"
)

var _ codec.Codec = rawjson.Codec{}

func TestCodec(t *testing.T) {
	c := rawjson.Codec{}
	if c.ID() != codec.JSONID || c.Name() != "json" {
		t.Errorf("codec %d %q", c.ID(), c.Name())
	}
	in := json.RawMessage(` {"A":  1}`)
	wire, err := c.Append([]byte("head"), &in)
	if err != nil || string(wire) != `head {"A":  1}` {
		t.Errorf("%q, %v", wire, err)
	}
	out := json.RawMessage("a longer text than what comes")
	if err := c.Unmarshal(wire[4:], &out); err != nil || string(out) != string(in) {
		t.Errorf("%q, %v", out, err)
	}
	wire[6] = 'x'
	if string(out) != string(in) {
		t.Error("the message shares memory with the data")
	}
	if _, err := c.Append(nil, 1); err == nil {
		t.Error("a number can be sent")
	}
	if err := c.Unmarshal(nil, new(int)); err == nil {
		t.Error("a number can be received")
	}
}
