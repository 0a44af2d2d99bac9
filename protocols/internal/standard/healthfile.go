package standard

import (
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

const healthService = "grpc.health.v1.Health"

// healthFile returns the descriptor of grpc/health/v1/health.proto, as a set: programs that do not
// use gRPC do not have it.
var healthFile = sync.OnceValue(func() []byte {
	scalar := func(name string, n int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &n, Type: kind.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	typed := func(f *descriptorpb.FieldDescriptorProto, of string) *descriptorpb.FieldDescriptorProto {
		f.TypeName = proto.String(".grpc.health.v1." + of)
		return f
	}
	const text, enum, message = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_ENUM, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	states := &descriptorpb.EnumDescriptorProto{Name: proto.String("ServingStatus")}
	for n, name := range []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"} {
		states.Value = append(states.Value, &descriptorpb.EnumValueDescriptorProto{Name: &name, Number: proto.Int32(int32(n))})
	}
	statuses := typed(scalar("statuses", 1, message), "HealthListResponse.StatusesEntry")
	statuses.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	method := func(name, in, out string, stream bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: proto.String(".grpc.health.v1." + in), OutputType: proto.String(".grpc.health.v1." + out), ServerStreaming: &stream,
		}
	}
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("grpc/health/v1/health.proto"), Package: proto.String("grpc.health.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("HealthCheckRequest"), Field: []*descriptorpb.FieldDescriptorProto{scalar("service", 1, text)}},
			{
				Name:     proto.String("HealthCheckResponse"),
				Field:    []*descriptorpb.FieldDescriptorProto{typed(scalar("status", 1, enum), "HealthCheckResponse.ServingStatus")},
				EnumType: []*descriptorpb.EnumDescriptorProto{states},
			},
			{Name: proto.String("HealthListRequest")},
			{
				Name:  proto.String("HealthListResponse"),
				Field: []*descriptorpb.FieldDescriptorProto{statuses},
				NestedType: []*descriptorpb.DescriptorProto{{
					Name:    proto.String("StatusesEntry"),
					Field:   []*descriptorpb.FieldDescriptorProto{scalar("key", 1, text), typed(scalar("value", 2, message), "HealthCheckResponse")},
					Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
				}},
			},
		},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: proto.String("Health"),
			Method: []*descriptorpb.MethodDescriptorProto{
				method("Check", "HealthCheckRequest", "HealthCheckResponse", false),
				method("List", "HealthListRequest", "HealthListResponse", false),
				method("Watch", "HealthCheckRequest", "HealthCheckResponse", true),
			},
		}},
	}
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	if err != nil {
		return nil // it cannot fail: strings are valid and no field is required
	}
	return set
})
