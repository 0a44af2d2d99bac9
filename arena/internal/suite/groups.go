package suite

import "github.com/anser-rpc/anser/arena/result"

// Groups says in which groups rows are compared: key names the shape of a row, with its
// connections. A row that is its peer's best is compared with the best of the others. It is
// compared with those of its own shape as well, where a row is that is not the best of its peer:
// otherwise the peers with other connections would be missing there.
func Groups(rows []result.Row, key func(*result.Row) string) (own func(*result.Row) bool) {
	whole := make(map[string]bool)
	for i := range rows {
		if !rows[i].Best {
			whole[key(&rows[i])] = true
		}
	}
	return func(row *result.Row) bool { return !row.Best || whole[key(row)] }
}
