package model_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{"arith-1": "arith-1", "": ""} {
		if got := model.Text(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
	long := model.Text(strings.Repeat("é", 1<<20) + "\x1b[31m\n")
	if utf8.RuneCountInString(long) != model.MaxText+1 || strings.ContainsAny(long, "\x1b\n") {
		t.Errorf("a text of %d bytes is left: %.40q", len(long), long)
	}
	if got := model.Text("a\x1b]0;b\x07\nc\u202e"); strings.ContainsAny(got, "\x1b\x07\n\u202e") {
		t.Errorf("%q has control characters", got)
	}
}
