// Package greet is what protoc-gen-go generates from greet.proto. Package greetconnect is what
// protoc-gen-connect-go makes of it.
package greet

//go:generate env GOWORK=off go run -C ../../../../internal/tools ./pbgen -root ../.. -connect examples/coming/connect/greet/greet.proto
