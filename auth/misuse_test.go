package auth_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/auth"
)

// A nil option is an error.
func TestNilOption(t *testing.T) {
	if _, err := auth.OpenTokens("tokens.json", nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
	if _, err := auth.OpenPolicy("policy.json", nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
	if _, err := auth.OpenSigned("keys.json", nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
	if _, err := auth.OpenMutualTLS([]string{"list.crl"}, nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
}
