package jsonschema

import "google.golang.org/protobuf/reflect/protoreflect"

// WellKnown are the messages whose JSON is not that of their fields.
var WellKnown = map[protoreflect.FullName]func() *Schema{
	"google.protobuf.Timestamp": func() *Schema { return &Schema{Type: Types{String}, Format: "date-time"} },
	"google.protobuf.Duration": func() *Schema {
		return &Schema{Type: Types{String}, Pattern: `^-?[0-9]+(\.[0-9]{1,9})?s$`, Description: "Seconds, such as 1.5s.", Sample: `"1.5s"`}
	},
	"google.protobuf.FieldMask": func() *Schema {
		return &Schema{Type: Types{String}, Description: "Names of fields with commas between them.", Sample: `""`}
	},
	"google.protobuf.Struct":    func() *Schema { return &Schema{Type: Types{Object}, AdditionalProperties: new(Schema)} },
	"google.protobuf.Value":     func() *Schema { return &Schema{Description: "Any value."} },
	"google.protobuf.ListValue": func() *Schema { return &Schema{Type: Types{Array}, Items: new(Schema)} },
	"google.protobuf.Empty":     func() *Schema { return &Schema{Type: Types{Object}} },
	"google.protobuf.Any": func() *Schema {
		return &Schema{
			Type: Types{Object}, Description: "A message of any type, or {}.", AdditionalProperties: new(Schema), Sample: "{}",
			Properties: Members{{Name: "@type", Schema: &Schema{Type: Types{String}, Description: "The type: type.googleapis.com/ and the full name of the message."}}},
		}
	},
	"google.protobuf.BoolValue":   func() *Schema { return &Schema{Type: Types{Boolean}} },
	"google.protobuf.StringValue": func() *Schema { return &Schema{Type: Types{String}} },
	"google.protobuf.BytesValue":  func() *Schema { return ProtoScalar(protoreflect.BytesKind) },
	"google.protobuf.Int32Value":  func() *Schema { return ProtoScalar(protoreflect.Int32Kind) },
	"google.protobuf.UInt32Value": func() *Schema { return ProtoScalar(protoreflect.Uint32Kind) },
	"google.protobuf.Int64Value":  func() *Schema { return ProtoScalar(protoreflect.Int64Kind) },
	"google.protobuf.UInt64Value": func() *Schema { return ProtoScalar(protoreflect.Uint64Kind) },
	"google.protobuf.FloatValue":  func() *Schema { return ProtoScalar(protoreflect.FloatKind) },
	"google.protobuf.DoubleValue": func() *Schema { return ProtoScalar(protoreflect.DoubleKind) },
}

// ProtoScalar returns the schema of a scalar in protobuf's JSON.
func ProtoScalar(k protoreflect.Kind) *Schema {
	switch k {
	case protoreflect.BoolKind:
		return &Schema{Type: Types{Boolean}}
	case protoreflect.StringKind:
		return &Schema{Type: Types{String}}
	case protoreflect.BytesKind:
		return &Schema{Type: Types{String}, ContentEncoding: "base64"}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return &Schema{Type: Types{Integer}, Format: "int32", Minimum: "-2147483648", Maximum: "2147483647"}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return &Schema{Type: Types{Integer}, Minimum: "0", Maximum: "4294967295"}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return &Schema{Type: Types{String}, Format: "int64", Pattern: "^-?[0-9]+$", Sample: `"1"`}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return &Schema{Type: Types{String}, Format: "uint64", Pattern: "^[0-9]+$", Sample: `"1"`}
	}
	format := "double"
	if k == protoreflect.FloatKind {
		format = "float"
	}
	return &Schema{AnyOf: []*Schema{{Type: Types{Number}, Format: format}, {Type: Types{String}, Enum: []string{"NaN", "Infinity", "-Infinity"}}}}
}

// ProtoKey returns the schema of the keys of a map, or nil for any.
func ProtoKey(k protoreflect.Kind) *Schema {
	switch s := ProtoScalar(k); {
	case k == protoreflect.StringKind:
		return nil
	case k == protoreflect.BoolKind:
		return &Schema{Enum: []string{"true", "false"}, Sample: "true"}
	case s.Minimum == "0" || s.Format == "uint64":
		return &Schema{Pattern: "^[0-9]+$", Sample: "1"}
	}
	return &Schema{Pattern: "^-?[0-9]+$", Sample: "1"}
}
