// Package limits holds tests alone: each limit that a server has, one below it, at it and one over it, with
// what the one who is over it is told and what is counted. docs/limits.md has the table.
package limits
