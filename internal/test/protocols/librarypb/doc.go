// Package librarypb is a contract whose methods have paths of their own by google.api.http.
package librarypb

//go:generate go run ../../../../cmd/anser gen -I . .
