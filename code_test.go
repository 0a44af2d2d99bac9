package anser_test

import (
	"testing"

	"github.com/anser-rpc/anser"
)

// Codes, outcomes and states can be read as they were written.
func TestNamesAreParsed(t *testing.T) {
	for c := range anser.Code(40) {
		text, _ := c.MarshalText()
		if got := anser.Code(255); got.UnmarshalText(text) != nil || got != c {
			t.Errorf("%s was parsed as %s", text, got)
		}
	}
	for o := range anser.Outcome(9) {
		text, _ := o.MarshalText()
		if got := anser.Outcome(255); got.UnmarshalText(text) != nil || got != o {
			t.Errorf("%s was parsed as %s", text, got)
		}
	}
	for s := range anser.BreakerState(9) {
		text, _ := s.MarshalText()
		if got := anser.BreakerState(255); got.UnmarshalText(text) != nil || got != s {
			t.Errorf("%s was parsed as %s", text, got)
		}
	}
	for _, text := range []string{"", "Not Found", "code", "code x", "code 256", "outcome 1"} {
		if err := new(anser.Code).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a code", text)
		}
	}
}
