package command

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

var (
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
)

// diffContext is how many equal lines are shown around a difference.
const diffContext = 3

// maxDiffCells bounds the table of the comparison; for larger texts the whole text is shown as
// replaced.
const maxDiffCells = 4 << 20

// diffLines compares texts line by line, by their longest common subsequence.
func diffLines(a, b string) []string {
	x, y := strings.Split(strings.TrimRight(a, "\n"), "\n"), strings.Split(strings.TrimRight(b, "\n"), "\n")
	var lines []string
	i, j := 0, 0
	if (len(x)+1)*(len(y)+1) <= maxDiffCells {
		common := make([][]int32, len(x)+1)
		for k := range common {
			common[k] = make([]int32, len(y)+1)
		}
		for i := len(x) - 1; i >= 0; i-- {
			for j := len(y) - 1; j >= 0; j-- {
				if x[i] == y[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
		for i < len(x) && j < len(y) {
			switch {
			case x[i] == y[j]:
				lines = append(lines, "  "+x[i])
				i, j = i+1, j+1
			case common[i+1][j] >= common[i][j+1]:
				lines = append(lines, "- "+x[i])
				i++
			default:
				lines = append(lines, "+ "+y[j])
				j++
			}
		}
	}
	for ; i < len(x); i++ {
		lines = append(lines, "- "+x[i])
	}
	for ; j < len(y); j++ {
		lines = append(lines, "+ "+y[j])
	}
	return shortDiff(lines)
}

// shortDiff removes equal lines that are far from any difference.
func shortDiff(lines []string) []string {
	var out []string
	left := false
	for i, l := range lines {
		near := slices.ContainsFunc(lines[max(i-diffContext, 0):min(i+diffContext+1, len(lines))], func(l string) bool { return l[0] != ' ' })
		switch {
		case near:
			out = append(out, l)
			left = false
		case !left && len(out) > 0:
			out = append(out, "  …")
			left = true
		}
	}
	return out
}
