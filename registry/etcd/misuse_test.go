package etcd_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry/etcd"
)

// A nil option is an error.
func TestNilOption(t *testing.T) {
	if _, err := etcd.Dial([]string{"127.0.0.1:1"}, nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
	if _, err := etcd.Dial([]string{"127.0.0.1:1"}, etcd.Option(nil)); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
}
