// Package anserpb contains Anser's options for protobuf files; see options.proto.
package anserpb

//go:generate go run ../../cmd/anser gen -I .. options.proto
