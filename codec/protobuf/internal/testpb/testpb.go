// Package testpb holds messages that vtproto's generated code treats like the standard runtime, and
// messages that it does not, each with that code.
package testpb

//go:generate env GOWORK=off go run -C ../../../../internal/tools ./pbgen -root ../.. -vt codec/protobuf/internal/testpb/modern.proto codec/protobuf/internal/testpb/legacy.proto codec/protobuf/internal/testpb/edition.proto
