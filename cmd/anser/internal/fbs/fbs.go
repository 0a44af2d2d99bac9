// Package fbs reads schemas of FlatBuffers:
//
//	namespace orders;
//
//	/// An item of an order.
//	table Item {
//	  text:string (required);
//	  number:uint;
//	}
//
//	rpc_service Orders {
//	  Add(Item):Item;
//	  Watch(Item):Item (streaming: "server");
//	}
//
// It takes what flatc 25.12 takes, with the exceptions that [Loader.Load] lists.
package fbs

import (
	"slices"
	"strings"

	"github.com/anser-rpc/anser/cmd/anser/internal/mistakes"
	"github.com/anser-rpc/anser/contract"
)

// Schema is a set of files with everything that they include. It and all that it contains are for
// reading, and safe for concurrent reading.
type Schema struct {
	Files []*File // a file comes after the ones that it includes, unless they include each other
}

// File is what a file defines, in its order.
type File struct {
	Path     string // as it was opened, for errors too
	Given    bool   // it was asked for, and not only included
	Includes []*Include
	Objects  []*Object
	Enums    []*Enum
	Services []*Service

	Root       *Object // the table of root_type, or nil
	Identifier string  // of four bytes, or empty
	Extension  string

	root       *reference
	attributes map[string]bool // that the file declares
	visible    map[*File]bool  // the file and all that it includes
}

// Include is a line that includes a file.
type Include struct {
	Name string // as it is written
	File *File
	At   contract.Position
}

// Definition is what objects, enums and services have in common.
type Definition struct {
	Name       string // without the namespace
	Namespace  string // "a.b", or empty
	Doc        []string
	Attributes Attributes
	File       *File
	At         contract.Position

	order int // among all definitions of a schema
}

// FullName returns the name with the namespace.
func (d *Definition) FullName() string { return qualified(d.Namespace, d.Name) }

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

// Object is a table or a struct.
type Object struct {
	Definition
	Struct bool
	Fields []*Field // in the order of the slots of a table, or of the bytes of a struct
	Align  int      // of a struct, in bytes; 1 of a table
	Size   int      // of a struct, in bytes; 0 of a table
	Key    *Field   // the field with the attribute key, or nil
}

// Field is a field of an object.
type Field struct {
	Name       string
	Doc        []string
	Type       Type
	Default    Default
	Attributes Attributes
	At         contract.Position

	Offset     int // from the start of the vtable of a table, or of a struct; in bytes
	Padding    int // bytes after the field of a struct
	Optional   bool
	Required   bool
	Deprecated bool
	Key        bool
	Shared     bool
	Offset64   bool
	// TypeField is the field with the type of a union, or of a vector of unions. It comes before
	// the union, and is not in the text.
	TypeField *Field
	Nested    *Object // of the attribute nested_flatbuffer

	ref   *typeReference
	value *value // of the default
	id    int
}

// Slot returns the number of the field in its table, from 0.
func (f *Field) Slot() int { return f.Offset/2 - 2 }

// Default is the value of a field that is absent. The zero value is zero or empty.
type Default struct {
	Int   int64   // of integers, enums and bool; bits of an unsigned one
	Float float64 // of float and double
	Text  string  // of a string
	Given bool    // a string or vector has a default, which may be empty
}

// Enum is a type whose values have names, or a union.
type Enum struct {
	Definition
	Union  bool
	Flags  bool         // the values are bits
	Type   Base         // of the values; UType of a union that does not choose it
	Values []*EnumValue // in the order of their numbers
}

// Value returns the value with the name, or nil.
func (e *Enum) Value(name string) *EnumValue {
	for _, v := range e.Values {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// EnumValue is a value of an enum, or a member of a union.
type EnumValue struct {
	Name       string
	Doc        []string
	Number     int64 // bits of an unsigned one
	Type       Type  // of a member of a union; None of its first one
	Attributes Attributes
	At         contract.Position

	ref *typeReference
}

// Service is a set of methods.
type Service struct {
	Definition
	Methods []*Method
}

// Method is a method of a service.
type Method struct {
	Name           string
	Doc            []string
	Request, Reply *Object
	Attributes     Attributes
	At             contract.Position

	ClientStream, ServerStream bool
	Idempotent, Oneway         bool

	request, reply *reference
}

// Attribute is an entry of what is in parentheses behind a declaration.
type Attribute struct {
	Name  string
	Value string // of a number as it is written
	Text  bool   // the value is a string
	At    contract.Position
}

// Attributes are those of one declaration, in the order of the text.
type Attributes []Attribute

// Get returns the attribute with the name, or nil.
func (a Attributes) Get(name string) *Attribute {
	for i := range a {
		if a[i].Name == name {
			return &a[i]
		}
	}
	return nil
}

// Text returns documentation without the blanks that begin its lines.
func Text(doc []string) string {
	lines := make([]string, len(doc))
	for i, line := range doc {
		lines[i] = strings.TrimRight(strings.TrimPrefix(line, " "), " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// maxErrors is the number of mistakes after which no more are reported.
const maxErrors = 20

// report collects mistakes.
type report struct{ errors mistakes.List }

func (r *report) wrong(at contract.Position, format string, args ...any) {
	if len(r.errors) <= maxErrors {
		r.errors.Add(at, format, args...)
	}
}

// err returns what was collected, sorted and without repetition, or nil.
func (r *report) err() error {
	if len(r.errors) == 0 {
		return nil
	}
	errs := slices.Clone(r.errors)
	errs.Sort()
	errs = slices.Compact(errs)
	if len(errs) > maxErrors {
		errs = errs[:maxErrors]
	}
	return errs
}
