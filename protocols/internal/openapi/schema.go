package openapi

import (
	"reflect"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/anser-rpc/anser/internal/jsonschema"
)

// Schema is a schema of a message or a value.
type Schema = jsonschema.Schema

const (
	request = jsonschema.Request
	reply   = jsonschema.Reply
)

// typeKey identifies a type of messages.
type typeKey struct {
	goType reflect.Type
	proto  protoreflect.FullName
	fixed  string // of the package itself
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// names returns the keys in order.
func names[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
