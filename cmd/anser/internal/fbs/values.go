package fbs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// parseInt returns the integer, which may be hexadecimal, or what is wrong with it. An unsigned one
// is returned by its bits.
func parseInt(text string, base Base) (n int64, wrong string) {
	digits, negative := strings.TrimPrefix(text, "+"), false
	if strings.HasPrefix(digits, "-") {
		digits, negative = digits[1:], true
	}
	radix := 10
	if len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		digits, radix = digits[2:], 16
	}
	least, most := base.limits()
	u, err := strconv.ParseUint(digits, radix, 64)
	outside := fmt.Sprintf("is not from %d to %d", least, most)
	switch {
	case isSyntax(err):
		return 0, "is not an integer"
	case err != nil, !negative && u > most, negative && u > uint64(-(least+1))+1 && least != 0, negative && least == 0 && u != 0:
		return 0, outside
	case negative:
		return -int64(u), ""
	}
	return int64(u), ""
}

// formatInt writes an integer by its bits.
func formatInt(n int64, base Base) string {
	if base.Unsigned() {
		return strconv.FormatUint(uint64(n), 10)
	}
	return strconv.FormatInt(n, 10)
}

// values gives the values of an enum their numbers.
type values struct {
	*report
	enum  *Enum
	next  int64
	full  bool // there is no next number
	first bool
}

func newValues(r *report, e *Enum) *values {
	v := &values{report: r, enum: e, first: !e.Union}
	if e.Union {
		v.next = 1
	}
	return v
}

// number sets the number of a value: the given one, or that after the value before.
func (v *values) number(value *EnumValue, given string) {
	e, n := v.enum, v.next
	if given != "" {
		wrong := ""
		if n, wrong = parseInt(given, e.Type); wrong != "" {
			v.wrong(value.At, "the number %s of %s %s", given, value.Name, wrong)
		}
	} else if v.full {
		v.wrong(value.At, "%s has no number: the one before it is the largest of type %v", value.Name, e.Type)
	}
	value.Number = n
	_, most := e.Type.limits()
	v.next, v.full = n+1, uint64(n) == most
}

// finish makes bits of the numbers of flags, and sorts the values.
func (v *values) finish() {
	e := v.enum
	if e.Flags {
		bits := int64(e.Type.Size() * 8)
		if !e.Type.Unsigned() {
			bits--
		}
		for _, value := range e.Values {
			if value.Number < 0 || value.Number >= bits {
				v.wrong(value.At, "%s is bit %d, and %v has the bits 0 to %d", value.Name, value.Number, e.Type, bits-1)
				continue
			}
			value.Number = 1 << uint(value.Number)
		}
	}
	named := make(map[string]bool)
	for _, value := range e.Values {
		if named[value.Name] {
			v.wrong(value.At, "%s has two values %s: rename one of them", e.Name, value.Name)
		}
		named[value.Name] = true
	}
	slices.SortStableFunc(e.Values, func(a, b *EnumValue) int {
		if e.Type.Unsigned() {
			return cmp.Compare(uint64(a.Number), uint64(b.Number))
		}
		return cmp.Compare(a.Number, b.Number)
	})
	for i := 1; i < len(e.Values); i++ {
		if a, b := e.Values[i-1], e.Values[i]; a.Number == b.Number {
			v.wrong(b.At, "%s and %s of %s both have the number %s", a.Name, b.Name, e.Name, formatInt(a.Number, e.Type))
		}
	}
}

// assign sets the default of a field from its text.
func (c *checker) assign(f *Field) {
	v, t := f.value, f.Type
	if v == nil {
		return
	}
	switch {
	case t.Base == String:
		f.Default.Given, f.Default.Text = true, v.text
		if v.kind != text {
			c.wrong(v.at, "the default of field %s must be a text in quotes", f.Name)
		}
		return
	case t.Base == Vector || t.Base == Vector64:
		f.Default.Given = true
		if !v.empty {
			c.wrong(v.at, "the default of field %s must be []", f.Name)
		}
		return
	case !t.Base.Scalar():
		c.wrong(v.at, "field %s of type %v cannot have a default", f.Name, t)
		return
	case v.empty:
		c.wrong(v.at, "the default of field %s must be a number: it is not a vector", f.Name)
		return
	case (v.kind == word || v.kind == text) && v.inner == nil && v.sign == "" && v.token.text == "null":
		f.Optional = true
		return
	}
	if t.Base.Real() {
		n, wrong := number(v)
		if wrong == "" && t.Base == Float && math.Abs(n) > math.MaxFloat32 && !math.IsInf(n, 0) {
			wrong = "does not fit into a float"
		}
		if wrong != "" {
			c.wrong(v.at, "the default %s of field %s %s", v.describe(), f.Name, wrong)
		}
		f.Default.Float = n
		return
	}
	n, wrong := c.integer(f, v)
	if wrong != "" {
		c.wrong(v.at, "the default %s of field %s %s", v.describe(), f.Name, wrong)
		return
	}
	f.Default.Int = n
}

// integer returns the default of an integer, an enum or bool.
func (c *checker) integer(f *Field, v *value) (int64, string) {
	t := f.Type
	switch {
	case v.inner != nil || v.sign != "" || v.kind == real:
		return 0, "is not an integer"
	case t.Base == Bool && v.token.text == "true" && v.kind != integer:
		return 1, ""
	case t.Base == Bool && v.token.text == "false" && v.kind != integer:
		return 0, ""
	case t.Base != Bool && v.kind != integer && v.token.text != "" && isLetter(v.token.text[0]):
		return c.enumNumber(f, v)
	}
	return parseInt(strings.TrimRight(v.token.text, " "), t.Base)
}

// enumNumber returns the number that the names of values make together.
func (c *checker) enumNumber(f *Field, v *value) (n int64, wrong string) {
	for part := range strings.SplitSeq(v.token.text, " ") {
		e, name := f.Type.Enum, part
		if e == nil {
			before, after, found := strings.Cut(part, ".")
			if !found {
				return 0, "is not a number"
			}
			r := *f.ref
			r.name = before
			if e, name = c.enum(&r.reference), after; e == nil {
				return 0, "names no enum that is defined before it"
			}
		}
		value := e.Value(name)
		if value == nil {
			return 0, fmt.Sprintf("is not a value of %s: it has %s", e.Name, valueNames(e))
		}
		n |= value.Number
	}
	return n, ""
}

func valueNames(e *Enum) string {
	var list []string
	for _, v := range e.Values {
		if len(list) == 8 {
			list = append(list, "…")
			break
		}
		list = append(list, v.Name)
	}
	return strings.Join(list, ", ")
}

// number returns a real number, or what is wrong with it.
func number(v *value) (n float64, wrong string) {
	if v.inner != nil {
		x, wrong := number(v.inner)
		if wrong != "" {
			return 0, wrong
		}
		y, known := function(v.text, x)
		if !known || v.sign != "" {
			return 0, "is not a function: there are deg, rad, sin, cos, tan, asin, acos and atan"
		}
		// flatc goes on with twelve decimals, so code in other languages has that default.
		y, err := strconv.ParseFloat(strconv.FormatFloat(y, 'f', 12, 64), 64)
		if err != nil {
			return 0, "is not a number"
		}
		return y, ""
	}
	s := v.sign + strings.TrimRight(v.text, " ")
	if v.kind == text || v.kind == word {
		switch strings.ToLower(strings.TrimLeft(s, "+-")) {
		case "nan":
			return math.NaN(), ""
		case "inf", "infinity":
			if strings.HasPrefix(s, "-") {
				return math.Inf(-1), ""
			}
			return math.Inf(1), ""
		}
	}
	if hex := strings.TrimLeft(s, "+-"); len(hex) > 1 && hex[1]|0x20 == 'x' && v.kind == integer {
		return 0, "is not a real number: a hexadecimal one has an exponent, such as 0x1p4"
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case isSyntax(err) || strings.Contains(s, "_"):
		return 0, "is not a number"
	case err != nil && n != 0:
		return 0, "does not fit into a double"
	}
	return n, ""
}

func function(name string, x float64) (y float64, known bool) {
	switch name {
	case "deg":
		return x / math.Pi * 180, true
	case "rad":
		return x * math.Pi / 180, true
	case "sin":
		return math.Sin(x), true
	case "cos":
		return math.Cos(x), true
	case "tan":
		return math.Tan(x), true
	case "asin":
		return math.Asin(x), true
	case "acos":
		return math.Acos(x), true
	case "atan":
		return math.Atan(x), true
	}
	return 0, false
}
