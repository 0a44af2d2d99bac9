package command

import (
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/internal/spelling"
)

// didYouMean returns "did you mean x?" with the nearest of the names, or "" where none is near.
func didYouMean(typed string, names []string) string {
	best, least := "", len(typed)
	for _, name := range names {
		d := spelling.Distance(strings.ToLower(typed), strings.ToLower(name), 64)
		if swapped(strings.ToLower(typed), strings.ToLower(name)) {
			d = 1
		}
		if d < least {
			best, least = name, d
		}
	}
	// Of three letters one may be wrong: "foo" is not "top".
	if best == "" || least > (min(len(typed), len(best))+2)/3 {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", best)
}

// swapped reports whether two neighbouring letters in a different order make the names different.
func swapped(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
