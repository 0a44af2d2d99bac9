// Package benchpb contains the messages of the two common benchmark workloads: a message of 581
// bytes that is sent back and forth, and an addition. Only tests, benchmarks and commands import
// it.
package benchpb

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

//go:generate env GOWORK=off go run -C ../tools ./pbgen -root ../.. -vt -anser internal/benchpb/benchmark.proto internal/benchpb/math.proto

// Text is the value of every string field of Filled.
const Text = "许多往事在眼前一幕一幕，变的那麼模糊"

// Filled returns the message of the workload, 581 bytes when serialized: every scalar and string
// field is set, the repeated one is empty.
func Filled() *BenchmarkMessage {
	m := new(BenchmarkMessage)
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.IsList() {
			continue
		}
		switch f.Kind() {
		case protoreflect.StringKind:
			r.Set(f, protoreflect.ValueOfString(Text))
		case protoreflect.BoolKind:
			r.Set(f, protoreflect.ValueOfBool(true))
		case protoreflect.Int32Kind:
			r.Set(f, protoreflect.ValueOfInt32(100000))
		case protoreflect.Int64Kind:
			r.Set(f, protoreflect.ValueOfInt64(100000))
		}
	}
	return m
}

// Answer turns the request of the workload into its reply, like every server in a comparison.
func Answer(m *BenchmarkMessage) {
	m.Field1, m.Field2 = proto.String("OK"), proto.Int32(100)
}

// Answered reports whether m is a reply that Answer made.
func Answered(m *BenchmarkMessage) bool {
	return m.GetField1() == "OK" && m.GetField2() == 100
}
