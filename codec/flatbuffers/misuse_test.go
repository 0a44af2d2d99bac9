package flatbuffers_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/flatbuffers"
	"github.com/anser-rpc/anser/codec/flatbuffers/internal/testfb"
)

// A nil option or verifier is an error of the codec, never a panic.
func TestNilOption(t *testing.T) {
	for name, opt := range map[string]flatbuffers.Option{"an option is nil": nil, "the verifier": flatbuffers.Table[testfb.Address](nil)} {
		c := flatbuffers.New(opt)
		if _, err := c.Append(nil, new(testfb.AddressT)); err == nil || !strings.Contains(err.Error(), name) {
			t.Error(err)
		}
		if err := c.Unmarshal(make([]byte, 64), new(testfb.Address)); err == nil || !strings.Contains(err.Error(), name) {
			t.Error(err)
		}
	}
}
