// Package typejson translates between protobuf messages and the JSON of the Go types that they
// describe (see protocontract.ToFiles). It differs from protobuf's own JSON: integers of 64 bits
// are numbers, fields have one name, unknown ones are ignored, and tuples may be arrays.
package typejson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxDepth is how deep messages may contain others.
const maxDepth = 1000

// Append appends the JSON of the message. Fields that are not set are left out.
func Append(b []byte, m protoreflect.ProtoMessage) ([]byte, error) {
	return appendMessage(b, m.ProtoReflect(), 0)
}

const valueName = "google.protobuf.Value"

// known reports whether the message is one that protobuf's JSON writes as another value: the JSON
// of these is the same in Go.
func known(d protoreflect.MessageDescriptor) bool {
	switch d.FullName() {
	case valueName, "google.protobuf.ListValue", "google.protobuf.Timestamp":
		return true
	}
	return false
}

func appendMessage(b []byte, m protoreflect.Message, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("messages are inside each other %d times", depth)
	}
	if known(m.Descriptor()) {
		if m.Descriptor().FullName() == valueName && m.WhichOneof(m.Descriptor().Oneofs().Get(0)) == nil {
			return append(b, "null"...), nil
		}
		return protojson.MarshalOptions{}.MarshalAppend(b, m.Interface())
	}
	b = append(b, '{')
	first := true
	var err error
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !first {
			b = append(b, ',')
		}
		first = false
		if b, err = appendText(b, f.JSONName()); err == nil {
			b, err = appendField(append(b, ':'), f, v, depth)
		}
		return err == nil
	})
	return append(b, '}'), err
}

func appendField(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value, depth int) ([]byte, error) {
	var err error
	switch {
	case f.IsMap():
		b = append(b, '{')
		first := true
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			if !first {
				b = append(b, ',')
			}
			first = false
			if b, err = appendText(b, k.String()); err == nil {
				b, err = appendValue(append(b, ':'), f.MapValue(), v, depth)
			}
			return err == nil
		})
		return append(b, '}'), err
	case f.IsList():
		b = append(b, '[')
		for i := range v.List().Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, f, v.List().Get(i), depth); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	return appendValue(b, f, v, depth)
}

func appendText(b []byte, s string) ([]byte, error) {
	text, err := json.Marshal(s)
	return append(b, text...), err
}

func appendValue(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value, depth int) ([]byte, error) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return appendMessage(b, v.Message(), depth+1)
	case protoreflect.StringKind:
		return appendText(b, v.String())
	case protoreflect.BytesKind:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, v.Bytes())
		return append(b, '"'), nil
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		bits := 64
		if f.Kind() == protoreflect.FloatKind {
			bits = 32
		}
		if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
			return nil, fmt.Errorf("field %s is %v, which JSON cannot have", f.Name(), v.Float())
		}
		return strconv.AppendFloat(b, v.Float(), 'g', -1, bits), nil
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, v.Bool()), nil
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return strconv.AppendInt(b, v.Int(), 10), nil
	}
	return nil, fmt.Errorf("field %s has the type %v, which no Go type has", f.Name(), f.Kind())
}

// Read sets the fields of an empty message to what the JSON says.
func Read(text []byte, m protoreflect.ProtoMessage) error {
	return readMessage(text, m.ProtoReflect(), 0)
}

func readMessage(text []byte, m protoreflect.Message, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("messages are inside each other %d times", depth)
	}
	if known(m.Descriptor()) {
		return protojson.Unmarshal(text, m.Interface())
	}
	fields := m.Descriptor().Fields()
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '[' {
		var elements []json.RawMessage
		if err := json.Unmarshal(text, &elements); err != nil {
			return err
		}
		if len(elements) != fields.Len() {
			return fmt.Errorf("%d values for %s, which has %d", len(elements), m.Descriptor().Name(), fields.Len())
		}
		for i, e := range elements {
			if err := readField(e, m, fields.Get(i), depth); err != nil {
				return err
			}
		}
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("message %s: %w", m.Descriptor().Name(), err)
	}
	for name, text := range members {
		if f := fields.ByJSONName(name); f != nil {
			if err := readField(text, m, f, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func isNull(text []byte) bool { return string(text) == "null" }

func readField(text []byte, m protoreflect.Message, f protoreflect.FieldDescriptor, depth int) error {
	if isNull(text) && (f.Message() == nil || f.Message().FullName() != valueName) {
		return nil
	}
	switch {
	case f.IsMap():
		return readMap(text, m.Mutable(f).Map(), f, depth)
	case f.IsList():
		var elements []json.RawMessage
		if err := json.Unmarshal(text, &elements); err != nil {
			return fmt.Errorf("field %s: %w", f.Name(), err)
		}
		list := m.Mutable(f).List()
		for _, e := range elements {
			v, err := readValue(e, f, list.NewElement, depth)
			if err != nil {
				return err
			}
			list.Append(v)
		}
		return nil
	}
	v, err := readValue(text, f, func() protoreflect.Value { return m.NewField(f) }, depth)
	if err == nil && (f.HasPresence() || !v.Equal(f.Default())) {
		m.Set(f, v)
	}
	return err
}

func readMap(text []byte, entries protoreflect.Map, f protoreflect.FieldDescriptor, depth int) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("field %s: %w", f.Name(), err)
	}
	for name, text := range members {
		if f.MapKey().Kind() == protoreflect.StringKind {
			quoted, err := json.Marshal(name)
			if err != nil {
				return err
			}
			name = string(quoted)
		}
		k, err := readScalar([]byte(name), f.MapKey())
		if err != nil {
			return err
		}
		v, err := readValue(text, f.MapValue(), entries.NewValue, depth)
		if err != nil {
			return err
		}
		entries.Set(k.MapKey(), v)
	}
	return nil
}

// readValue reads an element. null is its zero value.
func readValue(text []byte, f protoreflect.FieldDescriptor, empty func() protoreflect.Value, depth int) (protoreflect.Value, error) {
	if f.Message() == nil {
		if isNull(text) {
			return f.Default(), nil
		}
		return readScalar(text, f)
	}
	v := empty()
	if isNull(text) && f.Message().FullName() != valueName {
		return v, nil
	}
	return v, readMessage(text, v.Message(), depth+1)
}

func readScalar(text []byte, f protoreflect.FieldDescriptor) (v protoreflect.Value, err error) {
	switch f.Kind() {
	case protoreflect.StringKind:
		var s string
		err = json.Unmarshal(text, &s)
		v = protoreflect.ValueOfString(s)
	case protoreflect.BytesKind:
		var b []byte
		err = json.Unmarshal(text, &b)
		v = protoreflect.ValueOfBytes(b)
	case protoreflect.BoolKind:
		var b bool
		err = json.Unmarshal(text, &b)
		v = protoreflect.ValueOfBool(b)
	case protoreflect.FloatKind:
		var n float32
		err = json.Unmarshal(text, &n)
		v = protoreflect.ValueOfFloat32(n)
	case protoreflect.DoubleKind:
		var n float64
		err = json.Unmarshal(text, &n)
		v = protoreflect.ValueOfFloat64(n)
	case protoreflect.Int32Kind:
		var n int32
		err = json.Unmarshal(unquoted(text), &n)
		v = protoreflect.ValueOfInt32(n)
	case protoreflect.Int64Kind:
		var n int64
		err = json.Unmarshal(unquoted(text), &n)
		v = protoreflect.ValueOfInt64(n)
	case protoreflect.Uint32Kind:
		var n uint32
		err = json.Unmarshal(unquoted(text), &n)
		v = protoreflect.ValueOfUint32(n)
	case protoreflect.Uint64Kind:
		var n uint64
		err = json.Unmarshal(unquoted(text), &n)
		v = protoreflect.ValueOfUint64(n)
	default:
		err = fmt.Errorf("no Go type has the type %v", f.Kind())
	}
	if err != nil {
		return v, fmt.Errorf("field %s: %w", f.Name(), err)
	}
	return v, nil
}

// unquoted returns the number in a string, as the option "string" in a tag of encoding/json writes
// it.
func unquoted(text []byte) []byte {
	if len(text) > 2 && text[0] == '"' {
		return text[1 : len(text)-1]
	}
	return text
}
