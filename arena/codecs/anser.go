package main

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	thriftmessage "github.com/anser-rpc/anser/arena/peers/thrift-go/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/bson"
	"github.com/anser-rpc/anser/codec/cbor"
	"github.com/anser-rpc/anser/codec/codectest/generated/colfertest"
	"github.com/anser-rpc/anser/codec/codectest/generated/flatbufferstest"
	"github.com/anser-rpc/anser/codec/codectest/generated/gencodetest"
	"github.com/anser-rpc/anser/codec/flatbuffers"
	"github.com/anser-rpc/anser/codec/gob"
	"github.com/anser-rpc/anser/codec/gojson"
	"github.com/anser-rpc/anser/codec/hessian2"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/codec/thrift"
	"github.com/anser-rpc/anser/internal/benchpb"
)

const anserModule = "github.com/anser-rpc/anser"

// standard is a protobuf message without the methods of vtproto.
type standard struct{ m workload.BenchmarkMessage }

// ProtoReflect makes it a proto.Message.
func (s *standard) ProtoReflect() protoreflect.Message { return s.m.ProtoReflect() }

// ofAnser are the codecs that Anser offers.
func ofAnser(message *workload.BenchmarkMessage, data *benchpb.Plain) ([]subject, error) {
	schema, err := flatbuffers.ParseSchema(flatbufferstest.Schema)
	if err != nil {
		return nil, err
	}
	verifier, err := schema.Table("flatbufferstest.Message")
	if err != nil {
		return nil, err
	}
	tables := flatbuffers.New(flatbuffers.Object[flatbufferstest.Message, flatbufferstest.MessageT](verifier))
	structs, ofGencode, ofColfer, object := new(thriftmessage.BenchmarkMessage), new(gencodetest.Message), new(colfertest.Message), new(flatbufferstest.MessageT)
	for _, to := range []any{structs, ofGencode, ofColfer, object} {
		convert(to, data)
	}
	plain := new(standard)
	fill(&plain.m, message)
	own := new(benchpb.BenchmarkMessage) // with the code of anser gen
	encoded, err := proto.Marshal(message)
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(encoded, own); err != nil {
		return nil, err
	}
	text := []byte(workload.Text)
	var bytes []byte
	for len(bytes)+len(text) <= workload.StandardPayload {
		bytes = append(bytes, text...)
	}
	bytes = append(bytes, make([]byte, workload.StandardPayload-len(bytes))...)
	all := []subject{
		through(protobuf.New(), "protobuf, anser gen's code", own),
		through(protobuf.New(protobuf.Separate()), "protobuf, anser gen's code, values by themselves", own),
		through(protobuf.New(), "protobuf, vtproto's code", message),
		through(protobuf.New(), "protobuf, standard code", plain),
		through(msgpack.New(), "MessagePack, msgp's code", (*Message)(data)),
		through(msgpack.New(), "MessagePack, plain struct", data),
		through(new(codec.JSON), "JSON, plain struct", data),
		through(protobuf.NewJSON(), "JSON of protobuf", message),
		through(codec.Binary{}, "binary, methods by hand", (*byHand)(data)),
		through(codec.Raw{}, "raw, bytes as they are", &bytes),
		through(codec.Binary{}, "binary, Colfer's code", ofColfer),
		through(codec.Binary{TrustPeers: true}, "binary, gencode's code", ofGencode),
		through(gob.New(), "gob, plain struct", data),
		through(cbor.New(), "CBOR, plain struct", data),
		through(tables, "FlatBuffers, objects", object),
		{
			name: "FlatBuffers, tables in place", module: anserModule,
			encode: func(dst []byte) ([]byte, error) { return tables.Append(dst, object) },
			decode: func(data []byte) (any, error) {
				m := new(flatbufferstest.Message)
				return m, tables.Unmarshal(data, m)
			},
			same: func(decoded any) error { return differ(object, decoded.(*flatbufferstest.Message).UnPack()) },
		},
		through(thrift.Binary(), "Thrift, binary", structs),
		through(thrift.Compact(), "Thrift, compact", structs),
		through(bson.New(), "BSON, plain struct", data),
		through(hessian2.New(new(javaMessage)), "Hessian 2, plain struct", (*javaMessage)(data)),
		through(gojson.New(), "JSON by goccy/go-json, plain struct", data),
	}
	for i := range all {
		all[i].anser = true
	}
	return all, nil
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
