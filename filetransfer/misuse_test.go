package filetransfer_test

import (
	"os"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

// A nil argument is an error, in particular a nil authorizer: without one every operation is
// allowed.
func TestNilOption(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, opt := range map[string]filetransfer.ServeOption{
		"nil": nil, "Authorize": filetransfer.Authorize(nil), "OnComplete": filetransfer.OnComplete(nil),
	} {
		if _, err := filetransfer.Serve(anser.NewServer(), root, opt); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := filetransfer.Stat(t.Context(), nil, "a", nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Error(err)
	}
}
