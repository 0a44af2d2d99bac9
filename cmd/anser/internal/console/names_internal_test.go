package console

import (
	"slices"
	"testing"
)

func TestCompareNames(t *testing.T) {
	want := []string{"", "a", "a-1", "a-02", "a-2b", "a-10", "a-10b", "a-18446744073709551616", "b", "b1.9", "b1.10", "b2"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareNames)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if compareNames("a-01", "a-1") != 0 || compareNames("a1", "a1") != 0 {
		t.Error("equal names are not")
	}
}
