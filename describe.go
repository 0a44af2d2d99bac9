package anser

import (
	"context"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// MethodsName is the built-in method by which a server tells what it serves. Its request is [None]
// and its reply [MethodList], both in the JSON codec or MessagePack. [NoDescribe] switches it off.
const MethodsName = builtinPrefix + "Methods"

// None is a message without fields.
type None struct{}

// MethodList is the reply of [MethodsName].
type MethodList struct {
	Methods []MethodInfo `json:"methods"` // sorted by name
}

// MethodInfo describes one method.
type MethodInfo struct {
	Name       string   `json:"name"`
	Aliases    []string `json:"aliases,omitempty"`
	Request    Shape    `json:"request"`
	Reply      Shape    `json:"reply"`
	Idempotent bool     `json:"idempotent,omitempty"`
}

// Shape describes a message as JSON sees it.
type Shape struct {
	Type string `json:"type"` // the Go type, or "message" with the full name of a protobuf message
	// JSON is a message in which every field has an example value.
	JSON json.RawMessage `json:"json"`
}

// addDescribe serves MethodsName.
func (s *Server) addDescribe() {
	s.add(&method{
		name: MethodsName, builtin: true, idempotent: true,
		newRequest: func() any { return new(None) },
		handle:     func(context.Context, any) (any, error) { return s.describe(), nil },
		request:    reflect.TypeFor[None](), reply: reflect.TypeFor[MethodList](),
	}, []HandleOption{Idempotent()})
}

func (s *Server) describe() *MethodList {
	list := new(MethodList)
	for name, m := range s.methods {
		if m.builtin || m.name != name {
			continue
		}
		info := MethodInfo{Name: name, Request: shapeOf(m.request), Reply: shapeOf(m.reply), Idempotent: m.idempotent}
		for other, a := range s.aliases {
			if a.method == m {
				info.Aliases = append(info.Aliases, other)
			}
		}
		slices.Sort(info.Aliases)
		list.Methods = append(list.Methods, info)
	}
	slices.SortFunc(list.Methods, func(a, b MethodInfo) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func shapeOf(t reflect.Type) Shape {
	data, err := json.Marshal(example(t, 0))
	if err != nil {
		data = []byte("null")
	}
	return Shape{Type: t.String(), JSON: data}
}

const exampleDepth = 4

var (
	timeType      = reflect.TypeFor[time.Time]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
)

// example returns a value that encoding/json writes as a message of type t with a zero in every field.
func example(t reflect.Type, depth int) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == timeType:
		return "2006-01-02T15:04:05Z"
	case reflect.PointerTo(t).Implements(textType), reflect.PointerTo(t).Implements(marshalerType):
		return ownExample(t)
	case depth > exampleDepth:
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return exampleStruct(t, depth)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return ""
		}
		return []any{example(t.Elem(), depth+1)}
	case reflect.Map:
		return map[string]any{"key": example(t.Elem(), depth+1)}
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Interface:
		return nil
	}
	return 0
}

// ownExample is what a type that writes itself makes of its zero value, if it makes anything.
func ownExample(t reflect.Type) (value any) {
	defer func() {
		if recover() != nil {
			value = nil
		}
	}()
	data, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		return nil
	}
	return json.RawMessage(data)
}

// exampleStruct keeps the fields' order.
func exampleStruct(t reflect.Type, depth int) any {
	var b strings.Builder
	b.WriteByte('{')
	addFields(&b, t, depth)
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

func addFields(b *strings.Builder, t reflect.Type, depth int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			addFields(b, f.Type, depth)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		value, err := json.Marshal(example(f.Type, depth+1))
		if err != nil {
			continue
		}
		key, _ := json.Marshal(name)
		if !strings.HasSuffix(b.String(), "{") {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
}
