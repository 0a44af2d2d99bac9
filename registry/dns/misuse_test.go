package dns_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry/dns"
)

// A nil option is an error.
func TestNilOption(t *testing.T) {
	if _, err := dns.New("arith:80", nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
}
