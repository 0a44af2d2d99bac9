// Package limits contains tests only: each limit of a server, one below it, at it and one above
// it, with the peer's error and the counter. docs/limits.md has the table.
package limits
