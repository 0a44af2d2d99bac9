//go:build !race

package netrpc_test

const raceEnabled = false
