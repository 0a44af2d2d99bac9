package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry/kubernetes"
)

// A nil option is an error.
func TestNilOption(t *testing.T) {
	if _, err := kubernetes.Dial(nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
}
