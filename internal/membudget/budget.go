// Package membudget bounds the bytes that the parts of a program hold together.
package membudget

import "sync/atomic"

// Budget is a number of bytes to hold at once. It is safe for concurrent use; the zero value
// allows none.
type Budget struct {
	limit int64
	held  atomic.Int64
}

// SetLimit sets the number of bytes. It must be called before the other methods.
func (b *Budget) SetLimit(bytes int64) { b.limit = bytes }

// Limit returns the number of bytes that may be held.
func (b *Budget) Limit() int64 { return b.limit }

// Held returns the number of bytes that are held.
func (b *Budget) Held() int64 { return b.held.Load() }

// Take reports whether n more bytes may be held, and if so counts them.
func (b *Budget) Take(n int) bool {
	if b.held.Add(int64(n)) > b.limit {
		b.held.Add(int64(-n))
		return false
	}
	return true
}

// Force counts n bytes that are held regardless of the limit.
func (b *Budget) Force(n int) { b.held.Add(int64(n)) }

// Give releases n bytes.
func (b *Budget) Give(n int) { b.held.Add(int64(-n)) }

// Scarce reports whether more than half of the limit is held.
func (b *Budget) Scarce() bool { return b.held.Load() > b.limit/2 }
