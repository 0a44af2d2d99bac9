package spelling_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/internal/spelling"
)

func TestDistance(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"arith", "arith", 0},
		{"airth", "arith", 2},
		{"percnt", "percent", 1},
		{"kitten", "sitting", 3},
		{long, long + "y", 0},
		{long, "", 64},
	} {
		if got := spelling.Distance(c.a, c.b, 64); got != c.want {
			t.Errorf("the distance of %q and %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
