package namepattern_test

import (
	"testing"

	"github.com/anser-rpc/anser/internal/namepattern"
)

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		name     string
		want     bool
	}{
		{nil, "Arith.Mul", false},
		{[]string{"Arith.Mul"}, "Arith.Mul", true},
		{[]string{"Arith.Mul"}, "Arith.MulDiv", false},
		{[]string{"Arith.*"}, "Arith.Mul", true},
		{[]string{"Arith.*"}, "Ariths.Mul", false},
		{[]string{"*.Get*"}, "orders.v1.Orders.GetAll", true},
		{[]string{"*.Get*"}, "orders.v1.Orders.Put", false},
		{[]string{"a*b*c"}, "abc", true},
		{[]string{"a*b*c"}, "acb", false},
		{[]string{"a*a"}, "a", false},
		{[]string{"*"}, "Arith.Mul", true},
		{[]string{"*", "!Arith.Mul"}, "Arith.Mul", false},
		{[]string{"!Arith.M*", "*"}, "Arith.Mul", false},
		{[]string{"!Arith.Mul"}, "Arith.Add", false},
	} {
		if got := namepattern.Allows(c.patterns, c.name); got != c.want {
			t.Errorf("%q allow %s: %v", c.patterns, c.name, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for pattern, want := range map[string]bool{"Arith.Mul": true, "!Arith.*": true, "*": true, "": false, "!": false, "Arith.Mul, Arith.Add": false, "Arith Mul": false} {
		if err := namepattern.Check(pattern); (err == nil) != want {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
