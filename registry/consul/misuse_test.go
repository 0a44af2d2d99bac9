package consul_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry/consul"
)

// A nil option is an error.
func TestNilOption(t *testing.T) {
	if _, err := consul.Dial("127.0.0.1:1", nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
}
