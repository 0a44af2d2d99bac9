// Package greetconnect is what protoc-gen-connect-go generates from greet.proto.
package greetconnect
