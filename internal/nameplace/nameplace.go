// Package nameplace spreads the names of methods over a small table, in which most of them are
// found without a map.
package nameplace

// Count is the number of places.
const Count = 64

// Of returns the place of a name. It depends on the length and the last bytes, where the names of
// one service differ.
func Of(name string) int {
	n := len(name)
	if n < 2 {
		return n
	}
	return (n + 7*int(name[n-1]) + 31*int(name[n-2])) % Count
}
