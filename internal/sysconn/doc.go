// Package sysconn provides socket operations that package net does not offer, by platform: reads
// that wait without a buffer, non-blocking writes, the length of the receive queue, waiting for it
// without reading, connections that are not accepted yet, TCP_USER_TIMEOUT and SO_REUSEPORT.
package sysconn

// Room is the place for the bytes that a [Reader] reads.
type Room interface {
	// Free returns the place for the next bytes, which is not empty.
	Free() []byte
	// Waits is called if there are no bytes yet. The place is not used until Free is called again.
	Waits()
}
