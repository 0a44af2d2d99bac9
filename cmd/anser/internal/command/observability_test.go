package command

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// Every command in docs/observability.md exists and has the flags and the number of arguments that
// are shown.
func TestCommandsOfObservability(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for line := range strings.Lines(string(text)) {
		words, found := strings.CutPrefix(strings.TrimSpace(line), "$ anser ")
		if !found {
			continue
		}
		args := strings.Fields(strings.NewReplacer("'", "", `"`, "").Replace(words))
		root := newRoot(streams{in: new(bytes.Buffer), out: new(bytes.Buffer), err: new(bytes.Buffer)})
		c, rest, err := root.Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err != nil || c == root {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
		checked++
	}
	if checked < 8 {
		t.Errorf("the page has %d commands", checked)
	}
}
