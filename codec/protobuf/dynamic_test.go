package protobuf_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/anser-rpc/anser/codec/protobuf"
)

// An entry of a map with a second key of the wrong wire type is an error: the standard library
// panics on it in messages of dynamicpb.
func TestDynamicMapWithTwoKeys(t *testing.T) {
	m := dynamicpb.NewMessage(new(structpb.Struct).ProtoReflect().Descriptor())
	err := protobuf.New().Unmarshal([]byte("\x0a\x05\x0a\x01a\x08\x00"), m)
	if err == nil || !strings.Contains(err.Error(), "an entry of a map is malformed") {
		t.Error(err)
	}
}
