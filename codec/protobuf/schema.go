package protobuf

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A schema records whether vtproto's code behaves like the standard runtime for a type.
type schema struct {
	fast bool
	root *node // the checks on the bytes; nil for none
}

func (s schema) check(b []byte) error {
	if s.root == nil {
		return nil
	}
	return s.root.check(b, maxDepth)
}

// A node is a message type, with the fields that are checked in its bytes.
type node struct {
	entry *entry                             // not nil for a map entry
	near  []field                            // by number, up to maxNear
	far   map[protoreflect.FieldNumber]field // the others
}

const maxNear = 255

// A field is text that must be UTF-8 or a message whose bytes are checked. The zero value is any
// other field.
type field struct {
	text    protoreflect.FullName
	message *node
}

// An entry is a map entry. vtproto assumes the expected types of its two fields, whatever their
// wire types are, and then continues in the middle of a value; and if the value is missing, which
// means an empty message, it leaves a nil pointer in the map.
type entry struct {
	key, value protowire.Type
	message    bool // the value is a message
}

func newEntry(d protoreflect.MessageDescriptor) *entry {
	key, value := d.Fields().ByNumber(1), d.Fields().ByNumber(2)
	return &entry{wireType(key), wireType(value), value.Message() != nil}
}

func (e *entry) permits(number protowire.Number, t protowire.Type) bool {
	return (number != 1 || t == e.key) && (number != 2 || t == e.value)
}

func (n *node) field(number protoreflect.FieldNumber) field {
	if int(number) < len(n.near) {
		return n.near[number]
	}
	if n.far == nil {
		return field{}
	}
	return n.far[number]
}

func (n *node) set(number protoreflect.FieldNumber, f field) {
	if number > maxNear {
		if n.far == nil {
			n.far = map[protoreflect.FieldNumber]field{}
		}
		n.far[number] = f
		return
	}
	for int(number) >= len(n.near) {
		n.near = append(n.near, field{})
	}
	n.near[number] = f
}

// newSchema analyses a message type and all message types inside it.
func newSchema(d protoreflect.MessageDescriptor) *schema {
	w := walk{
		messages: map[protoreflect.FullName]protoreflect.MessageDescriptor{},
		holders:  map[protoreflect.FullName][]protoreflect.FullName{},
		nodes:    map[protoreflect.FullName]*node{},
	}
	if !w.collect(d) {
		return &schema{}
	}
	w.mark()
	w.link()
	return &schema{fast: true, root: w.nodes[d.FullName()]}
}

// walk is the intermediate result of newSchema, by the full names of messages.
type walk struct {
	messages map[protoreflect.FullName]protoreflect.MessageDescriptor
	holders  map[protoreflect.FullName][]protoreflect.FullName // the messages that have it as a field
	nodes    map[protoreflect.FullName]*node                   // the messages whose bytes are checked
}

// collect adds d and the messages inside it. It reports false if vtproto does not support one of
// them.
func (w *walk) collect(d protoreflect.MessageDescriptor) bool {
	w.messages[d.FullName()] = d
	if d.ExtensionRanges().Len() > 0 {
		return false
	}
	for f := range fields(d) {
		if f.Kind() == protoreflect.GroupKind {
			return false
		}
		inner := f.Message()
		if inner == nil {
			continue
		}
		_, seen := w.messages[inner.FullName()]
		w.holders[inner.FullName()] = append(w.holders[inner.FullName()], d.FullName())
		if !seen && !w.collect(inner) {
			return false
		}
	}
	return true
}

// mark creates a node for each message that has text to check, contains itself or is a map entry,
// and for each message that contains one of these.
func (w *walk) mark() {
	for name, d := range w.messages {
		if d.IsMapEntry() || w.holds(name, name, map[protoreflect.FullName]bool{}) {
			w.markHolders(name)
		}
		for f := range fields(d) {
			if mustBeUTF8(f) {
				w.markHolders(name)
			}
		}
	}
}

// holds reports whether outer contains inner, at any depth.
func (w *walk) holds(outer, inner protoreflect.FullName, seen map[protoreflect.FullName]bool) bool {
	for _, holder := range w.holders[inner] {
		if holder == outer {
			return true
		}
		if !seen[holder] {
			seen[holder] = true
			if w.holds(outer, holder, seen) {
				return true
			}
		}
	}
	return false
}

func (w *walk) markHolders(name protoreflect.FullName) {
	if w.nodes[name] != nil {
		return
	}
	w.nodes[name] = new(node)
	for _, holder := range w.holders[name] {
		w.markHolders(holder)
	}
}

// link sets the fields of the nodes.
func (w *walk) link() {
	for name, n := range w.nodes {
		if d := w.messages[name]; d.IsMapEntry() {
			n.entry = newEntry(d)
		}
		for f := range fields(w.messages[name]) {
			if mustBeUTF8(f) {
				n.set(f.Number(), field{text: f.FullName()})
			}
			if inner := f.Message(); inner != nil && w.nodes[inner.FullName()] != nil {
				n.set(f.Number(), field{message: w.nodes[inner.FullName()]})
			}
		}
	}
}

// wireType returns the wire type of a single value of f.
func wireType(f protoreflect.FieldDescriptor) protowire.Type {
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	}
	return protowire.VarintType
}

func fields(d protoreflect.MessageDescriptor) func(yield func(protoreflect.FieldDescriptor) bool) {
	return func(yield func(protoreflect.FieldDescriptor) bool) {
		for i := range d.Fields().Len() {
			if !yield(d.Fields().Get(i)) {
				return
			}
		}
	}
}

// mustBeUTF8 follows the standard runtime: always in proto3, never in proto2, and according to the
// field's features in editions, which descriptors return by a method outside of their interface.
func mustBeUTF8(f protoreflect.FieldDescriptor) bool {
	if f.Kind() != protoreflect.StringKind {
		return false
	}
	switch f.ParentFile().Syntax() {
	case protoreflect.Proto2:
		return false
	case protoreflect.Editions:
		if f, ok := f.(interface{ EnforceUTF8() bool }); ok {
			return f.EnforceUTF8()
		}
	}
	return true
}
