// Package badinput holds what hostile peers send against servers and clients, over every transport.
// It consists of tests only; the table of the inputs is in rows_test.go, that for the wires of net/rpc in
// netrpc_test.go.
package badinput
