// Package testfb is what the compiler of FlatBuffers makes of testfb.fbs, for tests. The compiler is a
// Debian package (flatbuffers-compiler), so this is renewed by hand, in the folder above:
//
//	flatc --go --gen-object-api -o . testfb.fbs && flatc -b --schema -o testfb testfb.fbs && gofmt -w testfb
package testfb

import _ "embed"

// Schema is the schema as the compiler writes it with -b --schema.
//
//go:embed testfb.bfbs
var Schema []byte
