package console

import (
	"fmt"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
)

// An instance whose new process has a page elsewhere has a page that was not read yet, and not one
// that does not answer.
func TestPageNotReadYet(t *testing.T) {
	before := &instanceView{process: &collect.Process{ID: "1"}, fresh: true}
	for problem, want := range map[string]string{"": "", "refused": "its admin page does not answer: refused"} {
		var got string
		now := &instanceView{process: &collect.Process{Error: problem}}
		now.since(before, "shop", func(_, _, _, _, format string, args ...any) { got = fmt.Sprintf(format, args...) })
		if got != want {
			t.Errorf("with the error %q: %q, want %q", problem, got, want)
		}
	}
}
