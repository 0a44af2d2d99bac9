// Package stock is a contract that is a Go interface, with the code that anser gen generates from
// it.
package stock

import "context"

//go:generate go run ../../../cmd/anser gen .

// Stock counts what is there.
//
//anser:service shop.Stock
type Stock interface {
	// Take takes n pieces, and returns how many are left and whether more should be ordered.
	Take(ctx context.Context, name string, n int) (left int, order bool, err error)
}
