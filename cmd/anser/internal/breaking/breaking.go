// Package breaking finds out what the changes of a contract break. It follows the
// rules of protobuf and FlatBuffers for changing messages; for messages whose fields are told apart
// by name or position, the rules follow from the encoding.
package breaking

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anser-rpc/anser/contract"
)

// Level is what a change breaks. Each level includes those after it: what breaks the wire breaks
// JSON and source code, too.
type Level string

// The levels.
const (
	Wire   Level = "wire"   // programs with the old and the new contract do not understand each other
	JSON   Level = "json"   // they do in the binary encoding, and not in JSON
	Source Level = "source" // they do; code that uses the generated types must be changed
	Fine   Level = "fine"   // nothing
)

// rank orders levels, the worst first.
func (l Level) rank() int { return slices.Index([]Level{Wire, JSON, Source, Fine}, l) }

// AtLeast reports whether l is as bad as other or worse.
func (l Level) AtLeast(other Level) bool { return l.rank() <= other.rank() }

// Change is a difference between two contracts.
type Change struct {
	Level Level             `json:"level"`
	Path  string            `json:"path"` // "orders.v1.Order.id"
	At    contract.Position `json:"at,omitzero"`
	Text  string            `json:"text"` // what changed, its effect, and what to do instead
}

// Compare returns the differences, the worst first. The schemas are of the same kind.
func Compare(before, after *contract.Schema) []Change {
	c := &comparison{old: before, new: after, pairs: make(map[[2]string]bool)}
	c.services()
	for i := range before.Messages {
		m := &before.Messages[i]
		if n := after.Message(m.Name); n != nil {
			c.messages(m, n)
		} else if !c.tuple(m) {
			c.found(Source, m.Name, contract.Position{}, "the message was removed: code that uses it must be changed")
		}
	}
	for i := range before.Enums {
		e := &before.Enums[i]
		if n := after.Enum(e.Name); n != nil {
			c.enums(e, n)
		} else {
			c.found(Source, e.Name, contract.Position{}, "the enum was removed: code that uses it must be changed")
		}
	}
	for i := range after.Messages {
		if m := &after.Messages[i]; before.Message(m.Name) == nil && !c.tuple(m) {
			c.found(Fine, m.Name, m.At, "the message is new")
		}
	}
	for i := range after.Enums {
		if e := &after.Enums[i]; before.Enum(e.Name) == nil {
			c.found(Fine, e.Name, e.At, "the enum is new")
		}
	}
	slices.SortStableFunc(c.changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Level.rank(), b.Level.rank()), cmp.Compare(a.Path, b.Path))
	})
	return c.changes
}

// comparison collects changes.
type comparison struct {
	old, new *contract.Schema
	pairs    map[[2]string]bool // messages and enums that were compared
	changes  []Change
}

func (c *comparison) found(l Level, path string, at contract.Position, format string, args ...any) {
	c.changes = append(c.changes, Change{l, path, at, fmt.Sprintf(format, args...)})
}

// tuple reports whether the message is the arguments or results of a method, and no declaration of
// its own.
func (*comparison) tuple(m *contract.Message) bool { return m.Form == contract.InOrder }

func (c *comparison) services() {
	for i := range c.old.Services {
		old := &c.old.Services[i]
		now := c.new.Service(old.Name)
		if now == nil {
			c.found(Wire, old.Name, contract.Position{}, "the service was removed: calls of old clients fail with Unimplemented; mark it as deprecated, and remove it when it has no callers")
			continue
		}
		for j := range old.Methods {
			c.method(old.Name, &old.Methods[j], now.Method(old.Methods[j].Name))
		}
		for j := range now.Methods {
			if m := &now.Methods[j]; old.Method(m.Name) == nil {
				c.found(Fine, old.Name+"."+m.Name, m.At, "the method is new; calls of it fail with Unimplemented at servers that do not have it yet, so update servers before clients")
			}
		}
	}
	for i := range c.new.Services {
		if s := &c.new.Services[i]; c.old.Service(s.Name) == nil {
			c.found(Fine, s.Name, s.At, "the service is new")
		}
	}
}

func kindOf(m *contract.Method) string {
	switch {
	case m.Oneway:
		return "oneway"
	case m.ClientStream && m.ServerStream:
		return "a stream in both directions"
	case m.ClientStream:
		return "a stream of the client"
	case m.ServerStream:
		return "a stream of the server"
	}
	return "a call"
}

func (c *comparison) method(service string, old, now *contract.Method) {
	path := service + "." + old.Name
	if now == nil {
		c.found(Wire, path, contract.Position{}, "the method was removed: calls of old clients fail with Unimplemented; mark it as deprecated, and remove it when it has no callers")
		return
	}
	if a, b := kindOf(old), kindOf(now); a != b {
		c.found(Wire, path, now.At, "the method was %s and is %s: old and new programs fail at its first message; add a method with another name", a, b)
		return
	}
	switch {
	case old.Idempotent && !now.Idempotent:
		c.found(Wire, path, now.At, "the method is no longer idempotent: old clients still send a call again when they do not know its outcome; add a method with another name")
	case now.Idempotent && !old.Idempotent:
		c.found(Fine, path, now.At, "the method is idempotent now: clients may send a call again")
	}
	c.referred(path, "takes", old.Request, now.Request, now.At)
	c.referred(path, "returns", old.Reply, now.Reply, now.At)
}

// referred compares the messages that a method or field refers to by name.
func (c *comparison) referred(path, verb, old, now string, at contract.Position) {
	if old == now {
		return // compared with all others
	}
	a, b := c.old.Message(old), c.new.Message(now)
	if a == nil || b == nil {
		c.found(Wire, path, at, "it %s %s in place of %s", verb, quotedOr(now), quotedOr(old))
		return
	}
	if !c.tuple(a) || !c.tuple(b) {
		c.found(Source, path, at, "it %s %s in place of %s: code that uses it must be changed", verb, now, old)
	}
	c.messages(a, b)
}

func quotedOr(name string) string {
	if name == "" {
		return "nothing"
	}
	return name
}

// messages compares two messages, which may have different names.
func (c *comparison) messages(old, now *contract.Message) {
	pair := [2]string{old.Name, now.Name}
	if c.pairs[pair] {
		return
	}
	c.pairs[pair] = true
	if old.Form != now.Form {
		c.found(Wire, old.Name, now.At, "the message is %s, and was %s: old and new programs misread each other; use another name", formOf(now.Form), formOf(old.Form))
		return
	}
	switch old.Form {
	case contract.InPlace:
		c.inPlace(old, now)
	case contract.InOrder:
		c.inOrder(old, now)
	case contract.ByName:
		c.byName(old, now)
	case contract.ByNumber, contract.OneOf:
		c.byNumber(old, now)
	}
}

func formOf(f contract.Form) string {
	switch f {
	case contract.ByName:
		return "a struct with named fields"
	case contract.InPlace:
		return "a struct"
	case contract.InOrder:
		return "a list of values"
	case contract.OneOf:
		return "a union"
	case contract.Opaque:
		return "a type that encodes itself"
	}
	return "a message with numbered fields"
}

// inPlace compares structs of FlatBuffers, which have no room for any change.
func (c *comparison) inPlace(old, now *contract.Message) {
	same := len(old.Fields) == len(now.Fields) && old.Align == now.Align
	for i := range old.Fields {
		if !same {
			break
		}
		a, b := old.Fields[i], now.Fields[i]
		if a.Name != b.Name && a.Type == b.Type {
			c.found(JSON, old.Name+"."+a.Name, b.At, "the field is called %s now: JSON has the name, and code that uses it must be changed", b.Name)
		}
		same = a.Type == b.Type
		c.inner(old.Name+"."+a.Name, a.Type, b.Type)
	}
	if !same {
		c.found(Wire, old.Name, now.At, "the fields of the struct or its alignment changed: it has neither names nor numbers on the wire, so old and new programs misread each other; use a table, or a struct with another name")
	}
}

// inOrder compares arguments or results.
func (c *comparison) inOrder(old, now *contract.Message) {
	if len(old.Fields) != len(now.Fields) {
		c.found(Wire, old.Name, now.At, "there are %d values, and were %d: both sides must have the same number; add a method with another name", len(now.Fields), len(old.Fields))
		return
	}
	for i := range old.Fields {
		a, b := &old.Fields[i], &now.Fields[i]
		path := old.Name + "." + a.Name
		if a.Name != b.Name {
			c.found(JSON, path, b.At, "the value is called %s now: callers that send an object in place of an array use the name", b.Name)
		}
		c.named(path, a, b)
	}
}

// byName compares structs whose fields have their names on the wire.
func (c *comparison) byName(old, now *contract.Message) {
	fields := make(map[string]*contract.Field)
	for i := range now.Fields {
		fields[now.Fields[i].Name] = &now.Fields[i]
	}
	for i := range old.Fields {
		a := &old.Fields[i]
		path := old.Name + "." + a.Name
		b := fields[a.Name]
		if b == nil {
			c.found(Wire, path, now.At, "the field was removed or renamed: new programs ignore what old ones send in it, and old ones get the zero value; keep it, and add another one")
			continue
		}
		delete(fields, a.Name)
		if x, y := cmp.Or(a.JSON, a.Name), cmp.Or(b.JSON, b.Name); x != y {
			c.found(JSON, path, b.At, "the field is called %s in JSON, and was called %s", y, x)
		}
		c.named(path, a, b)
	}
	for i := range now.Fields {
		if f := &now.Fields[i]; fields[f.Name] != nil {
			c.found(Fine, now.Name+"."+f.Name, f.At, "the field is new: old programs ignore it, and send none")
		}
	}
}

// named compares the types of fields that MessagePack and JSON carry.
func (c *comparison) named(path string, a, b *contract.Field) {
	switch {
	case sameShape(a.Type, b.Type) && a.Type.Name == b.Type.Name:
		c.inner(path, a.Type, b.Type)
	case sameShape(a.Type, b.Type) && integer[a.Type.Name] && integer[b.Type.Name]:
		if wider(a.Type.Name, b.Type.Name) {
			c.found(Source, path, b.At, "the type is %s, and was %s: old programs lose the upper part of numbers that do not fit, and code that uses it must be changed", b.Type, a.Type)
			return
		}
		c.found(Wire, path, b.At, "the type is %s, and was %s: numbers of old programs may not fit; add another field", b.Type, a.Type)
	default:
		c.found(Wire, path, b.At, "the type is %s, and was %s: old and new programs cannot decode each other's messages; add another field", b.Type, a.Type)
	}
}
