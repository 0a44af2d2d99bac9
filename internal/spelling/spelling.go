// Package spelling compares names with user input, for advice such as "did you mean x?".
package spelling

// Distance returns the Levenshtein distance of two texts in bytes: the minimum number of bytes to
// insert, delete or replace that turns one into the other. Each text is truncated to its first
// most bytes, as the time grows with the product of the lengths.
func Distance(a, b string, most int) int {
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
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
