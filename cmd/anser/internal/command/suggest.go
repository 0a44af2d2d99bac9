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
		if d := spelling.Distance(strings.ToLower(typed), strings.ToLower(name), 64); d < least {
			best, least = name, d
		}
	}
	if best == "" || least > 1+len(best)/3 {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", best)
}
