//go:build race

package telemetry_test

// raced says that the race detector is on, under which pools drop some of their objects.
const raced = true
