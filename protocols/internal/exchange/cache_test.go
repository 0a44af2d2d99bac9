package exchange_test

import (
	"testing"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		tag  string
		list []string
		want bool
	}{
		{`"a"`, nil, false},
		{`"a"`, []string{`"a"`}, true},
		{`"a"`, []string{`W/"a"`}, true},
		{`W/"a"`, []string{`"a"`}, true},
		{`W/"a"`, []string{`W/"a"`}, true},
		{`"a"`, []string{`"b", "a"`}, true},
		{`"a"`, []string{`"b"`, ` "a" `}, true},
		{`"a"`, []string{"*"}, true},
		{`"a"`, []string{`a`, `"aa"`, ""}, false},
	} {
		if got := exchange.Matches(c.list, c.tag); got != c.want {
			t.Errorf("%q has %s: %v", c.list, c.tag, got)
		}
	}
}
