// Package sysconn provides socket operations that package net does not offer, by platform:
// non-blocking writes, the length of the receive queue, waiting for it without reading, connections
// that are not accepted yet, TCP_USER_TIMEOUT and SO_REUSEPORT.
package sysconn
