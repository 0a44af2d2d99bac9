//go:build race

package otel_test

// raced reports that pools drop objects at random, as the race detector makes them.
const raced = true
