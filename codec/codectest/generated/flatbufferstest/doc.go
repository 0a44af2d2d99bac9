// Package flatbufferstest is what the compiler of FlatBuffers makes of flatbufferstest.fbs. The
// compiler is a Debian package (flatbuffers-compiler), so this is renewed by hand, in the folder above:
//
//	flatc --go --gen-object-api -o . flatbufferstest.fbs && flatc -b --schema -o flatbufferstest flatbufferstest.fbs && gofmt -w flatbufferstest
package flatbufferstest

import _ "embed"

// Schema is the schema as the compiler writes it with -b --schema.
//
//go:embed flatbufferstest.bfbs
var Schema []byte
