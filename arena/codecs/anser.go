package main

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/internal/benchpb"
)

const anserModule = "github.com/anser-rpc/anser"

// standard is a protobuf message without the methods of vtproto.
type standard struct{ m workload.BenchmarkMessage }

// ProtoReflect makes it a proto.Message.
func (s *standard) ProtoReflect() protoreflect.Message { return s.m.ProtoReflect() }

// ofAnser are the codecs that Anser offers.
func ofAnser(message *workload.BenchmarkMessage, data *benchpb.Plain) []subject {
	plain := new(standard)
	fill(&plain.m, message)
	text := []byte(workload.Text)
	var bytes []byte
	for len(bytes)+len(text) <= workload.StandardPayload {
		bytes = append(bytes, text...)
	}
	bytes = append(bytes, make([]byte, workload.StandardPayload-len(bytes))...)
	all := []subject{
		through(protobuf.New(), "protobuf, vtproto's code", message),
		through(protobuf.New(), "protobuf, standard code", plain),
		through(msgpack.New(), "MessagePack, msgp's code", (*Message)(data)),
		through(msgpack.New(), "MessagePack, plain struct", data),
		through(new(codec.JSON), "JSON, plain struct", data),
		through(protobuf.NewJSON(), "JSON of protobuf", message),
		through(codec.Binary{}, "binary, methods by hand", (*byHand)(data)),
		through(codec.Raw{}, "raw, bytes as they are", &bytes),
	}
	for i := range all {
		all[i].anser = true
	}
	return all
}

// fill copies a message field by field: a copy of the struct would copy its state too.
func fill(to, from *workload.BenchmarkMessage) {
	from.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to.ProtoReflect().Set(f, v)
		return true
	})
}

// through measures a type with a codec of Anser.
func through[T any](c codec.Codec, name string, message *T) subject {
	return of(name, anserModule, message,
		func(dst []byte, m *T) ([]byte, error) { return c.Append(dst, m) },
		func(data []byte, m *T) error { return c.Unmarshal(data, m) })
}
