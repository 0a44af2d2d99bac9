package flatbuffers_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/codectest/generated/flatbufferstest"
	"github.com/anser-rpc/anser/codec/flatbuffers"
)

// A nil option or verifier is an error of the codec, never a panic.
func TestNilOption(t *testing.T) {
	for name, opt := range map[string]flatbuffers.Option{"an option is nil": nil, "the verifier": flatbuffers.Table[flatbufferstest.Message](nil)} {
		c := flatbuffers.New(opt)
		if _, err := c.Append(nil, new(flatbufferstest.MessageT)); err == nil || !strings.Contains(err.Error(), name) {
			t.Error(err)
		}
		if err := c.Unmarshal(make([]byte, 64), new(flatbufferstest.Message)); err == nil || !strings.Contains(err.Error(), name) {
			t.Error(err)
		}
	}
}
