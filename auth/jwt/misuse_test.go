package jwt_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/auth/jwt"
)

// A nil option is an error.
func TestNilOption(t *testing.T) {
	if _, err := jwt.New("me", "shop", nil, nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
}
