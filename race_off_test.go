//go:build !race

package anser_test

const raced = false
