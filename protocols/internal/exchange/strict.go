package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/codec/tuple"
	"github.com/anser-rpc/anser/internal/spelling"
)

// strict is JSON that refuses members that the message does not have: a member with a mistake in
// its name would be lost, and its caller would not learn it.
var strict codec.Codec = strictJSON{protobuf.NewJSON()}

type strictJSON struct{ *protobuf.JSON }

// Unmarshal decodes data, which must pass codec.CheckJSON.
func (c strictJSON) Unmarshal(data []byte, v any) error {
	if err := codec.CheckJSON(data); err != nil {
		return err
	}
	switch m := v.(type) {
	case *anser.Tuple:
		return m.UnmarshalJSONWith(data, c.value)
	case tuple.Message:
		layout, elements := m.Tuple()
		_, err := layout.DecodeJSONWith(c.value, data, elements...)
		return err
	}
	return c.value(data, v)
}

// value decodes a value that is not a tuple.
func (c strictJSON) value(data []byte, v any) error {
	var err error
	m, ok := v.(proto.Message)
	if ok {
		err = protojson.UnmarshalOptions{RecursionLimit: codec.MaxJSONDepth}.Unmarshal(data, m)
	} else if err = c.Unfit(v); err == nil {
		err = decodeGo(data, v)
	}
	if err == nil {
		return nil
	}
	found := unknownMember.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	known := new(members)
	if ok {
		known.addMessage(m.ProtoReflect().Descriptor())
	} else {
		known.addType(reflect.TypeOf(v))
	}
	return known.errUnknown(found[1])
}

// unknownMember finds the name in the errors of encoding/json and protojson.
var unknownMember = regexp.MustCompile(`unknown field "((?:[^"\\]|\\.)*)"`)

// decodeGo decodes one value of a Go type.
func decodeGo(data []byte, v any) error {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(v); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if _, err := in.Token(); err != io.EOF {
		return errors.New("there is text after the value")
	}
	return nil
}

// members are the names of the members of a message and of what is in it, for advice. A few are
// enough.
type members struct {
	names    []string
	types    map[reflect.Type]bool
	messages map[protoreflect.FullName]bool
}

const maxMembers = 100

func (k *members) addMessage(d protoreflect.MessageDescriptor) {
	if k.messages[d.FullName()] {
		return
	}
	if k.messages == nil {
		k.messages = make(map[protoreflect.FullName]bool)
	}
	k.messages[d.FullName()] = true
	for i := range d.Fields().Len() {
		if len(k.names) == maxMembers {
			return
		}
		k.names = append(k.names, d.Fields().Get(i).JSONName())
	}
	for i := range d.Fields().Len() {
		if m := d.Fields().Get(i).Message(); m != nil && len(k.names) < maxMembers {
			k.addMessage(m)
		}
	}
}

func (k *members) addType(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || k.types[t] {
		return
	}
	if k.types == nil {
		k.types = make(map[reflect.Type]bool)
	}
	k.types[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		if len(k.names) == maxMembers {
			return
		}
		if name == "" {
			name = f.Name
		}
		k.names = append(k.names, name)
	}
	for i := range t.NumField() {
		if f := t.Field(i); (f.IsExported() || f.Anonymous) && len(k.names) < maxMembers {
			k.addType(f.Type)
		}
	}
}

// maxCompared is the length up to which names are compared.
const maxCompared = 64

// errUnknown returns the error for a member that the message does not have.
func (k *members) errUnknown(name string) error {
	best, distance := "", len(name)/2+1
	for _, known := range k.names {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(known), maxCompared); d < distance {
			best, distance = known, d
		}
	}
	if len(name) > maxCompared {
		name = strings.ToValidUTF8(name[:maxCompared], "") + "…"
	}
	if best == "" {
		return fmt.Errorf("the message has no member %q: leave it out", name)
	}
	return fmt.Errorf("the message has no member %q: did you mean %q?", name, best)
}

// JSONMember returns the error for a member of an object that has only the known ones.
func JSONMember(name string, known ...string) error {
	return (&members{names: known}).errUnknown(name)
}
