//go:build race

package main

// raceFactor is how much more memory a process may have: the race detector takes up to ten times
// as much itself.
const raceFactor = 10
