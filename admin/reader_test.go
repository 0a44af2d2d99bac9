package admin_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/admin"
)

// The error of a page that cannot be reached has the address once, so that people can read it in a
// table, and no secrets of it.
func TestReaderSaysAnAddressOnce(t *testing.T) {
	_, err := new(admin.Reader).Figures(t.Context(), "http://ada:secret@127.0.0.1:1/", "state")
	if err == nil {
		t.Fatal("a page without a server is read")
	}
	if text := err.Error(); strings.Count(text, "http") != 1 || strings.Contains(text, "secret") || strings.Contains(text, "state") {
		t.Errorf("%s", text)
	}
}
