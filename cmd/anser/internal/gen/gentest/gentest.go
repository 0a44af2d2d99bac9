// Package gentest holds contracts of every kind with the code that is generated from them, and
// tests of that code.
package gentest

//go:generate go run ../../.. gen -I . .
