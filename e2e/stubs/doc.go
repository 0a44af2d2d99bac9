// Package stubs tests that the stubs of gRPC and of Connect call each other's servers over Anser.
package stubs
