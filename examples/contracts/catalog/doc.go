// Package catalog is a contract in protobuf, with the code that anser gen generates from it.
package catalog

//go:generate go run ../../../cmd/anser gen -I . .
