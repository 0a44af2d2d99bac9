package flatbuffers

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// reals are the names of numbers that JSON does not have.
var reals = []string{"nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}

// scalar returns a number, a bool or the value of an enum by its bits.
func (r *jsonReader) scalar(v any, t fieldType) (uint64, error) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		if text = strings.TrimSpace(v); t.index >= 0 && (text == "" || !strings.ContainsAny(text[:1], "+-0123456789")) {
			n, err := r.enums[t.index].parse(text)
			return uint64(n) & mask(t.base), err
		}
	case bool:
		if t.base == typeBool {
			return map[bool]uint64{true: 1}[v], nil
		}
		return 0, wanted("a number", v)
	default:
		return 0, wanted("a number", v)
	}
	bits := int(8 * scalars[t.base])
	switch t.base {
	case typeFloat, typeDouble:
		n, err := strconv.ParseFloat(text, bits)
		if err == nil && (math.IsInf(n, 0) || math.IsNaN(n)) && !slices.Contains(reals, strings.ToLower(text)) {
			err = strconv.ErrRange
		}
		if err != nil {
			return 0, unfit(text, t)
		}
		if t.base == typeFloat {
			return uint64(math.Float32bits(float32(n))), nil
		}
		return math.Float64bits(n), nil
	case typeBool:
		if n, err := strconv.ParseBool(text); err == nil {
			return map[bool]uint64{true: 1}[n], nil
		}
	case typeByte, typeShort, typeInt, typeLong:
		if n, err := strconv.ParseInt(text, 10, bits); err == nil {
			return uint64(n) & mask(t.base), nil
		}
	default:
		if n, err := strconv.ParseUint(text, 10, bits); err == nil {
			return n, nil
		}
	}
	return 0, unfit(text, t)
}

// mask has the bits of a number.
func mask(b baseType) uint64 { return math.MaxUint64 >> (64 - 8*scalars[b]) }

func unfit(text string, t fieldType) error {
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	kinds := map[baseType]string{
		typeBool: "a bool", typeByte: "a byte", typeUByte: "a ubyte", typeShort: "a short", typeUShort: "a ushort", typeInt: "an int",
		typeUInt: "a uint", typeLong: "a long", typeULong: "a ulong", typeFloat: "a float", typeDouble: "a double", typeUType: "a ubyte",
	}
	return fmt.Errorf("%q is not %s", text, kinds[t.base])
}

// parse returns the value with the name, or the bits of several names.
func (e *enumType) parse(text string) (bits int64, err error) {
	words := strings.Fields(text)
	if len(words) == 0 || len(words) > 1 && !e.flags {
		return 0, fmt.Errorf("%q is not a value of %s", text, e.name)
	}
next:
	for _, word := range words {
		for _, v := range e.values {
			if v.name == word {
				bits |= v.number
				continue next
			}
		}
		var names []string
		for _, v := range e.values {
			names = append(names, v.name)
		}
		return 0, fmt.Errorf("%q is not a value of %s: it has %s", word, e.name, strings.Join(names, ", "))
	}
	return bits, nil
}
