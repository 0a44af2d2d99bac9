package command

import (
	"fmt"
	"strings"
)

// didYouMean returns "did you mean x?" with the nearest of the names, or "" where none is near.
func didYouMean(typed string, names []string) string {
	best, least := "", len(typed)
	for _, name := range names {
		if d := editDistance(strings.ToLower(typed), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	if best == "" || least > 1+len(best)/3 {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", best)
}

// editDistance is Levenshtein's, of texts that are cut to 64 bytes.
func editDistance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
