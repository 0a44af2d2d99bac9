package fbcode

import (
	"go/token"
	"go/types"
	"strings"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

// Type returns the Go name of a table, struct or enum, which is that of the schema.
func Type(name string) string { return escaped(name) }

// Object returns the Go name of a type of the object API.
func Object(name string) string { return escaped(name) + "T" }

// Exported returns the name with capital letters in place of underscores, as flatc changes the
// names of fields: "max_hp" is MaxHp.
func Exported(name string) string { return escaped(camel(name, true)) }

// local returns the beginning of the names of variables for a field.
func local(name string) string { return escaped(camel(name, false)) }

// variable returns the name of a parameter for a field.
func variable(name string) string {
	v := local(name)
	// flatc does not see these, and writes code that does not compile.
	if types.Universe.Lookup(v) != nil || v == "builder" || v == "flatbuffers" || v == "math" {
		v += "_"
	}
	return v
}

// reserved are the names by which the generated code imports packages.
var reserved = set("bytes codec fbcodec flatbuffers math strconv")

// locals are the variables of generated functions. A type with such a name, which begins with a
// small letter, could not be named where they are, and init is a function in Go.
var locals = set(`a b bKey buf builder comp i identifierBytes init j key middle n numElems o o1 o2 obj obj1 obj2 offset ok rcv s span start t
	table tableOffset text v val vectorLocation x`)

func set(words string) map[string]bool {
	all := make(map[string]bool)
	for _, word := range strings.Fields(words) {
		all[word] = true
	}
	return all
}

// escaped returns a name that is not a keyword of Go.
func escaped(name string) string {
	if token.IsKeyword(name) {
		return name + "_"
	}
	return name
}

// camel changes a name as flatc does, which takes all names for lowerCamel first.
func camel(name string, upper bool) string {
	s := []byte(snake(name))
	var out []byte
	for i := 0; i < len(s); i++ {
		switch {
		case i == 0 && s[0] == '_':
			out = append(out, '_')
			if len(s) > 1 && letter(s[1]) {
				i++
				out = append(out, capital(s[i]))
			}
		case i == 0 && upper:
			out = append(out, capital(s[0]))
		case s[i] == '_' && i+1 < len(s) && i > 0:
			i++
			out = append(out, capital(s[i]))
		default:
			out = append(out, s[i])
		}
	}
	return string(out)
}

func snake(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if i > 0 && c != '_' && !lower(c) && (lower(name[i-1]) || digit(name[i-1]) && !digit(c)) {
			b.WriteByte('_')
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		b.WriteByte(c)
	}
	return b.String()
}

func lower(c byte) bool  { return 'a' <= c && c <= 'z' }
func digit(c byte) bool  { return '0' <= c && c <= '9' }
func letter(c byte) bool { return lower(c | 0x20) }

func capital(c byte) byte {
	if lower(c) {
		c -= 'a' - 'A'
	}
	return c
}

// basics are Go's types of scalars.
var basics = [...]string{
	fbs.UType: "byte", fbs.Bool: "bool", fbs.Byte: "int8", fbs.UByte: "byte", fbs.Short: "int16", fbs.UShort: "uint16",
	fbs.Int: "int32", fbs.UInt: "uint32", fbs.Long: "int64", fbs.ULong: "uint64", fbs.Float: "float32", fbs.Double: "float64",
}

// accessor returns the end of the names of methods in the runtime: "Int32" of GetInt32.
func accessor(b fbs.Base) string { return string(capital(basics[b][0])) + basics[b][1:] }
