package kcp_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/kcp"
)

// A nil option is an error.
func TestNilOption(t *testing.T) {
	if _, err := kcp.Listen("127.0.0.1:0", nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
	if c, err := anser.Dial("kcp://127.0.0.1:1", kcp.Transport(nil)); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		if err == nil {
			c.Close()
		}
		t.Error(err)
	}
}
