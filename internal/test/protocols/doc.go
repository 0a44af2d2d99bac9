// Package protocols tests the protocols of a server's port with the stock clients of other systems.
package protocols
