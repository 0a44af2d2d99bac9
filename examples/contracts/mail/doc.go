// Package mail is a contract in the language of kiss-rpc, with the code that anser gen generates
// from it.
package mail

//go:generate go run ../../../cmd/anser gen .
