// Package badinput tests the input of hostile peers against servers and clients, over every
// transport. It contains tests only; the table of the inputs is in rows_test.go, that for the wire
// formats of net/rpc in netrpc_test.go.
package badinput
