// Package delivery is a schema of FlatBuffers, with the code that anser gen generates from it.
package delivery

//go:generate go run ../../../cmd/anser gen .
