// Package testpb contains messages for which vtproto's generated code behaves like the standard
// runtime, and messages for which it does not, all with that code.
package testpb

//go:generate env GOWORK=off go run -C ../../../../internal/tools ./pbgen -root ../.. -vt -anser codec/protobuf/internal/testpb/modern.proto codec/protobuf/internal/testpb/legacy.proto codec/protobuf/internal/testpb/edition.proto
