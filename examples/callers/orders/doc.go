// Package orders is the contract of the service that callers in all languages call.
package orders

//go:generate go run ../../../cmd/anser gen -I . .
