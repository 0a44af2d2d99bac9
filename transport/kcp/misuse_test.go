package kcp_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/transport/kcp"
)

// A nil option is an error.
func TestNilOption(t *testing.T) {
	if _, err := kcp.Listen("127.0.0.1:0", nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
}
