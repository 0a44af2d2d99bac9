package measure_test

import (
	"testing"

	"github.com/anser-rpc/anser/arena/internal/measure"
	"github.com/anser-rpc/anser/arena/result"
)

func TestValid(t *testing.T) {
	for _, c := range []struct {
		calls, errors, wrong int64
		valid                bool
	}{
		{1000, 0, 0, true},
		{990, 10, 0, true},
		{989, 11, 0, false},
		{0, 10, 0, false},
		{0, 0, 0, false},
		{1000, 0, 1, false},
	} {
		round := result.Round{Figures: result.Figures{Calls: c.calls, Errors: c.errors, Wrong: c.wrong}}
		if measure.Valid(&round) != c.valid {
			t.Errorf("%+v is valid: %t", c, !c.valid)
		}
	}
}
