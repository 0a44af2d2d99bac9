//go:build race

package anser_test

// raced says that the race detector is on, under which pools forget some of what they are given.
const raced = true
