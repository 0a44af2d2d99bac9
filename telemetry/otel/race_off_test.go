//go:build !race

package otel_test

const raced = false
