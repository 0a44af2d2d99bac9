package transcode

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// textual are the messages whose JSON is a single value.
var textual = map[protoreflect.FullName]bool{
	"google.protobuf.Timestamp": true, "google.protobuf.Duration": true, "google.protobuf.FieldMask": true,
	"google.protobuf.DoubleValue": true, "google.protobuf.FloatValue": true, "google.protobuf.Int64Value": true,
	"google.protobuf.UInt64Value": true, "google.protobuf.Int32Value": true, "google.protobuf.UInt32Value": true,
	"google.protobuf.BoolValue": true, "google.protobuf.StringValue": true, "google.protobuf.BytesValue": true,
}

// hasText reports whether a value of the field can be written as text in a path or a query.
func hasText(f protoreflect.FieldDescriptor) bool {
	return f.Message() == nil || textual[f.Message().FullName()]
}

var errNumber = errors.New("it is not a number of the field's type")

// parseText returns a value of the field from its text, in the form that the value has inside JSON.
// empty makes a new value, for messages.
func parseText(f protoreflect.FieldDescriptor, empty func() protoreflect.Value, text string) (protoreflect.Value, error) {
	switch f.Kind() {
	case protoreflect.StringKind:
		if !utf8.ValidString(text) {
			return protoreflect.Value{}, errors.New("it is not UTF-8")
		}
		return protoreflect.ValueOfString(text), nil
	case protoreflect.BytesKind:
		b, err := parseBytes(text)
		return protoreflect.ValueOfBytes(b), err
	case protoreflect.BoolKind:
		if text != "true" && text != "false" {
			return protoreflect.Value{}, errors.New("it is neither true nor false")
		}
		return protoreflect.ValueOfBool(text == "true"), nil
	case protoreflect.EnumKind:
		return parseEnum(f.Enum(), text)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		n, err := strconv.ParseInt(text, 10, 32)
		return protoreflect.ValueOfInt32(int32(n)), number(err)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		n, err := strconv.ParseInt(text, 10, 64)
		return protoreflect.ValueOfInt64(n), number(err)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		n, err := strconv.ParseUint(text, 10, 32)
		return protoreflect.ValueOfUint32(uint32(n)), number(err)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		n, err := strconv.ParseUint(text, 10, 64)
		return protoreflect.ValueOfUint64(n), number(err)
	case protoreflect.FloatKind:
		x, err := parseFloat(text, 32)
		return protoreflect.ValueOfFloat32(float32(x)), err
	case protoreflect.DoubleKind:
		x, err := parseFloat(text, 64)
		return protoreflect.ValueOfFloat64(x), err
	}
	return parseMessage(f, empty(), text)
}

func number(err error) error {
	if err != nil {
		return errNumber
	}
	return nil
}

// parseFloat takes the numbers of JSON, and the three texts of protobuf's JSON.
func parseFloat(text string, bits int) (float64, error) {
	switch text {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	if !json.Valid([]byte(text)) {
		return 0, errNumber
	}
	x, err := strconv.ParseFloat(text, bits)
	return x, number(err)
}

// parseBytes takes both alphabets of base64, with and without padding.
func parseBytes(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("it is not base64")
	}
	return b, nil
}

// parseEnum takes the name of a value, or its number.
func parseEnum(e protoreflect.EnumDescriptor, text string) (protoreflect.Value, error) {
	if v := e.Values().ByName(protoreflect.Name(text)); v != nil {
		return protoreflect.ValueOfEnum(v.Number()), nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || e.IsClosed() && e.Values().ByNumber(protoreflect.EnumNumber(n)) == nil {
		return protoreflect.Value{}, fmt.Errorf("it is not a value of %s", e.FullName())
	}
	return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)), nil
}

// parseMessage takes the value that the message is in JSON, which is text, a number or a boolean.
func parseMessage(f protoreflect.FieldDescriptor, v protoreflect.Value, text string) (protoreflect.Value, error) {
	data, err := json.Marshal(text)
	switch f.Message().FullName() {
	case "google.protobuf.BoolValue":
		data = []byte(text)
	}
	if err == nil {
		err = protojson.Unmarshal(data, v.Message().Interface())
	}
	if err != nil {
		return v, fmt.Errorf("it is not a %s", f.Message().FullName())
	}
	return v, nil
}
