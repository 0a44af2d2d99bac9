//go:build !race

package main

// raceFactor is how much more memory a process may have.
const raceFactor = 1
