// Package sysconn does with sockets what package net does not offer, by platform: writes that never
// wait, the length of the receive queue, TCP_USER_TIMEOUT and SO_REUSEPORT.
package sysconn
