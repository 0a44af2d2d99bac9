package fbs

import "math"

// Base is a kind of type. The numbers are those of FlatBuffers' reflection.
type Base uint8

// The kinds.
const (
	None Base = iota
	UType
	Bool
	Byte
	UByte
	Short
	UShort
	Int
	UInt
	Long
	ULong
	Float
	Double
	String
	Vector
	Obj // a table or a struct
	Union
	Array
	Vector64
)

// bases are the names of scalars and of string.
var bases = map[string]Base{
	"bool": Bool, "byte": Byte, "int8": Byte, "ubyte": UByte, "uint8": UByte, "short": Short, "int16": Short,
	"ushort": UShort, "uint16": UShort, "int": Int, "int32": Int, "uint": UInt, "uint32": UInt,
	"long": Long, "int64": Long, "ulong": ULong, "uint64": ULong,
	"float": Float, "float32": Float, "double": Double, "float64": Double, "string": String,
}

// names has the first name of each kind in the language.
var names = [...]string{
	Bool: "bool", Byte: "byte", UByte: "ubyte", Short: "short", UShort: "ushort", Int: "int", UInt: "uint",
	Long: "long", ULong: "ulong", Float: "float", Double: "double", String: "string",
	UType: "utype", Vector: "vector", Obj: "object", Union: "union", Array: "array", Vector64: "vector64", None: "none",
}

// String returns the name in the language.
func (b Base) String() string {
	if int(b) < len(names) {
		return names[b]
	}
	return "unknown"
}

// Scalar reports whether b is a number or bool.
func (b Base) Scalar() bool { return b >= UType && b <= Double }

// Integer reports whether b is an integer or bool.
func (b Base) Integer() bool { return b >= UType && b <= ULong }

// Real reports whether b is float or double.
func (b Base) Real() bool { return b == Float || b == Double }

// Unsigned reports whether b is an unsigned integer.
func (b Base) Unsigned() bool {
	switch b {
	case UType, UByte, UShort, UInt, ULong:
		return true
	}
	return false
}

// Size returns the bytes that a value takes in place; that of an offset if it is elsewhere.
func (b Base) Size() int {
	switch b {
	case None:
		return 0
	case UType, Bool, Byte, UByte:
		return 1
	case Short, UShort:
		return 2
	case Long, ULong, Double, Vector64:
		return 8
	}
	return 4
}

// limits returns the smallest and the largest value of an integer.
func (b Base) limits() (least int64, most uint64) {
	switch bits := uint(b.Size() * 8); {
	case b == Bool:
		return 0, 1
	case b.Unsigned():
		return 0, math.MaxUint64 >> (64 - bits)
	default:
		return -1 << (bits - 1), math.MaxUint64 >> (65 - bits)
	}
}

// Type is the type of a field or of a member of a union.
type Type struct {
	Base    Base
	Element Base // of a vector or array
	Length  int  // of an array
	Object  *Object
	Enum    *Enum // an enum or union, also of elements
}

// Of returns the type of an element of a vector or array.
func (t Type) Of() Type { return Type{Base: t.Element, Object: t.Object, Enum: t.Enum} }

// Series reports whether t is a vector or an array.
func (t Type) Series() bool { return t.Base == Vector || t.Base == Vector64 || t.Base == Array }

// Struct reports whether t is a struct.
func (t Type) Struct() bool { return t.Base == Obj && t.Object != nil && t.Object.Struct }

// Size returns the bytes that a value takes in place; that of an offset if it is elsewhere.
func (t Type) Size() int {
	switch {
	case t.Struct():
		return t.Object.Size
	case t.Base == Array:
		return t.Length * t.Of().Size()
	}
	return t.Base.Size()
}

// Align returns the alignment of a value in place, in bytes.
func (t Type) Align() int {
	switch {
	case t.Struct():
		return t.Object.Align
	case t.Base == Array:
		return t.Of().Align()
	}
	return t.Base.Size()
}

// String writes the type as in a schema.
func (t Type) String() string {
	switch {
	case t.Base == Array:
		return "[" + t.Of().String() + ":" + itoa(t.Length) + "]"
	case t.Series():
		return "[" + t.Of().String() + "]"
	case t.Object != nil:
		return t.Object.FullName()
	case t.Enum != nil:
		return t.Enum.FullName()
	}
	return t.Base.String()
}
