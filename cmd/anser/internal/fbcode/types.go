package fbcode

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

// basic returns the type of a number or bool, which may be an enum's.
func (w *writer) basic(t fbs.Type) string {
	if t.Enum != nil {
		return w.ref(&t.Enum.Definition, Type(t.Enum.Name))
	}
	return basics[t.Base]
}

// toEnum converts a value of the underlying type.
func (w *writer) toEnum(t fbs.Type, value string) string {
	if t.Enum == nil {
		return value
	}
	return w.basic(t) + "(" + value + ")"
}

// toBasic converts a value to its underlying type.
func (w *writer) toBasic(t fbs.Type, value string) string {
	if t.Enum == nil {
		return value
	}
	return basics[t.Base] + "(" + value + ")"
}

// object returns the type of a table or struct.
func (w *writer) objectType(o *fbs.Object) string { return w.ref(&o.Definition, Type(o.Name)) }

// native returns the type of a field in the object API.
func (w *writer) native(t fbs.Type) string {
	switch {
	case t.Series():
		return "[]" + w.native(t.Of())
	case t.Base == fbs.String:
		return "string"
	case t.Base == fbs.Obj:
		return "*" + w.ref(&t.Object.Definition, Object(t.Object.Name))
	case t.Base == fbs.Union:
		return "*" + w.ref(&t.Enum.Definition, Object(t.Enum.Name))
	}
	return w.basic(t)
}

// constant returns the default of a number or bool.
func (w *writer) constant(f *fbs.Field) string {
	b := f.Type.Base
	switch {
	case f.Optional:
		return "nil"
	case b == fbs.Bool:
		return strconv.FormatBool(f.Default.Int != 0)
	case b.Integer():
		return number(f.Default.Int, b)
	}
	n, bits := f.Default.Float, 64
	if b == fbs.Float {
		bits = 32
	}
	switch {
	case math.IsNaN(n):
		w.need("math")
		return basics[b] + "(math.NaN())"
	case math.IsInf(n, 0):
		w.need("math")
		if n > 0 {
			return basics[b] + "(math.Inf(1))"
		}
		return basics[b] + "(math.Inf(-1))"
	}
	text := strconv.FormatFloat(n, 'g', -1, bits)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// kind returns the end of the name of the builder's function for a field.
func kind(t fbs.Type) string {
	switch {
	case t.Base.Scalar():
		return accessor(t.Base)
	case t.Struct():
		return "Struct"
	}
	return "UOffsetT"
}

// refuse reports fields for which there is no Go code.
func (w *writer) refuse(f *fbs.Field) bool {
	what, instead := "", ""
	switch {
	case f.Type.Base == fbs.Array:
		what, instead = "is an array of fixed length", "use single fields, or a vector in a table"
	case f.Type.Struct() && hasArray(f.Type.Object):
		what, instead = "has an array of fixed length in it", "use single fields, or a vector in a table"
	case f.Type.Series() && f.Type.Element == fbs.Union:
		what, instead = "is a vector of unions", "use a vector of tables with a union each"
	case f.Offset64:
		what, instead = "has an offset of 64 bits", "remove the attribute"
	case f.Default.Given:
		what, instead = "is not a number and has a default", "remove the default"
	default:
		return false
	}
	w.wrong(f.At, "field %s %s, for which Go has no code: %s", f.Name, what, instead)
	return true
}

func hasArray(o *fbs.Object) bool {
	return slices.ContainsFunc(o.Fields, func(f *fbs.Field) bool {
		return f.Type.Base == fbs.Array || f.Type.Struct() && hasArray(f.Type.Object)
	})
}

func isUnionType(f *fbs.Field) bool {
	return f.Type.Base == fbs.UType && f.Type.Enum != nil && f.Type.Enum.Union
}

// bytesOnly reports whether a vector is of ubyte, and not of an enum.
func bytesOnly(t fbs.Type) bool {
	return t.Base == fbs.Vector && t.Element == fbs.UByte && t.Enum == nil
}
