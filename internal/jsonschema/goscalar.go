package jsonschema

import (
	"encoding/json"
	"strconv"
)

// GoScalar returns the schema of a scalar of Go by the name of its kind, as encoding/json writes
// it. Of another one it is that of any value.
func GoScalar(kind string) *Schema {
	switch kind {
	case "bool":
		return &Schema{Type: Types{Boolean}}
	case "string":
		return &Schema{Type: Types{String}}
	case "float32":
		return &Schema{Type: Types{Number}, Format: "float"}
	case "float64":
		return &Schema{Type: Types{Number}, Format: "double"}
	case "int", "int64":
		return &Schema{Type: Types{Integer}, Format: "int64"}
	case "int32":
		return &Schema{Type: Types{Integer}, Format: "int32", Minimum: "-2147483648", Maximum: "2147483647"}
	case "int8":
		return &Schema{Type: Types{Integer}, Minimum: "-128", Maximum: "127"}
	case "int16":
		return &Schema{Type: Types{Integer}, Minimum: "-32768", Maximum: "32767"}
	case "uint", "uint64", "uintptr":
		return &Schema{Type: Types{Integer}, Minimum: "0"}
	case "uint8":
		return &Schema{Type: Types{Integer}, Minimum: "0", Maximum: "255"}
	case "uint16":
		return &Schema{Type: Types{Integer}, Minimum: "0", Maximum: "65535"}
	case "uint32":
		return &Schema{Type: Types{Integer}, Minimum: "0", Maximum: "4294967295"}
	}
	return new(Schema) // an interface
}

// Int returns a number of a schema.
func Int(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
