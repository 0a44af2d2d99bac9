// Package mistakes has the errors of files that users write, with their places.
package mistakes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/contract"
)

// Mistake is one thing that is wrong in a file.
type Mistake struct {
	At   contract.Position
	Text string
}

// List is the error for files with mistakes. The zero value is an empty list.
type List []Mistake

// Add adds a mistake.
func (l *List) Add(at contract.Position, format string, args ...any) {
	*l = append(*l, Mistake{at, fmt.Sprintf(format, args...)})
}

// Error returns the mistakes, each on a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, m := range l {
		lines[i] = fmt.Sprintf("%v: %s", m.At, m.Text)
	}
	return strings.Join(lines, "\n")
}

// Sort brings the mistakes into the order of their places.
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
}
