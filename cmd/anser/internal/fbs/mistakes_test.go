package fbs_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
	"github.com/anser-rpc/anser/cmd/anser/internal/mistakes"
)

// Each mistake has one message, which begins with its place.
func TestMistakes(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"tabel A {}", `a.fbs:1:1: want a declaration such as table, struct, enum, union or rpc_service, not "tabel"`},
		{"{ \"a\": 1 }", `a.fbs:1:1: this is JSON: a schema has declarations only`},
		{"table A {};", `a.fbs:1:11: there is a ";" too many: remove it`},
		{"table {}", `a.fbs:1:7: want the name of the table, not "{"`},
		{"table A", `a.fbs:1:8: want "{" before the body of table A, not the end of the file`},
		{"table A { a:int; ", `a.fbs:1:18: want "}" at the end of table A, not the end of the file`},
		{"table A { a:int;\ntable B { b:int; }", `a.fbs:2:1: want "}" at the end of table A before "table"`},
		{"table A { a int; }", `a.fbs:1:13: want ":" and a type after field a, not "int"`},
		{"table A { a:int }", `a.fbs:1:17: want ";" after field a, not "}"`},
		{"table A { a:; }", `a.fbs:1:13: want the type of field a, not ";"`},
		{"table A { a:[int; }", `a.fbs:1:17: want "]" after the type of the elements, not ";"`},
		{"table A { a:[[int]]; }", `a.fbs:1:14: a vector cannot contain vectors: put the inner one into a table`},
		{"table A { a:int = ; }", `a.fbs:1:19: want the default of field a, not ";"`},
		{"table A { a:int = -; }", `a.fbs:1:19: "-" is not a number`},
		{"table A { a:[int] = [1]; }", `a.fbs:1:22: the only default of a vector is []`},
		{"table A { a:[int] = 1; }", `a.fbs:1:21: the default of field a must be []`},
		{"table A { a:string = 1; }", `a.fbs:1:22: the default of field a must be a text in quotes`},
		{"table A { a:A = 1; }", `a.fbs:1:17: field a of type A cannot have a default`},
		{"table A { a:int = []; }", `a.fbs:1:19: the default of field a must be a number: it is not a vector`},
		{"table A { a:int = 1.5; }", `a.fbs:1:19: the default "1.5" of field a is not an integer`},
		{"table A { a:byte = 128; }", `a.fbs:1:20: the default "128" of field a is not from -128 to 127`},
		{"table A { a:ulong = -1; }", `a.fbs:1:21: the default "-1" of field a is not from 0 to 18446744073709551615`},
		{"table A { a:bool = maybe; }", `a.fbs:1:20: the default "maybe" of field a is not an integer`},
		{"table A { a:int = seven; }", `a.fbs:1:19: the default "seven" of field a is not a number`},
		{"table A { a:int = \"E.A\"; }", `a.fbs:1:19: the default the text "E.A" of field a names no enum that is defined before it`},
		{"enum E:int { A, B } table A { a:E = C; }", `a.fbs:1:37: the default "C" of field a is not a value of E: it has A, B`},
		{"enum E:int { A = 1 } table A { a:E; }", `a.fbs:1:32: the default 0 of field a is not a value of E: write one behind the type, such as = A`},
		{"enum E:int { null } table A { a:E = null; }", `a.fbs:1:37: E has a value null, which as a default means that the field is optional: rename it`},
		{"table A { a:float = 1e39; }", `a.fbs:1:21: the default "1e39" of field a does not fit into a float`},
		{"table A { a:double = 1e400; }", `a.fbs:1:22: the default "1e400" of field a does not fit into a double`},
		{"table A { a:double = 0x10; }", `a.fbs:1:22: the default "0x10" of field a is not a real number: a hexadecimal one has an exponent, such as 0x1p4`},
		{"table A { a:double = pi; }", `a.fbs:1:22: the default "pi" of field a is not a number`},
		{"table A { a:double = log(1); }", `a.fbs:1:22: the default "log" of field a is not a function: there are deg, rad, sin, cos, tan, asin, acos and atan`},
		{"table A { a:double = sin(1; }", `a.fbs:1:27: want ")" after the argument of sin, not ";"`},
		{"table A { a:double = " + strings.Repeat("sin(", 70) + "1" + strings.Repeat(")", 70) + "; }", `a.fbs:1:282: the default of field a has more than 64 functions inside one another`},
		{"table A { a:int = 1x; }", `a.fbs:1:19: "1x" is not a number`},
		{"table A { a:int = 1.2.3; }", `a.fbs:1:19: "1.2.3" is not a number`},
		{"table A { a:int = 0x; }", `a.fbs:1:19: "0x" is not a number`},
		{"table A { a:double = 1e; }", `a.fbs:1:22: "1e" is not a number`},
		{"table A { a:B; }", `a.fbs:1:13: there is no type B: define it, or include the file that does`},
		{"namespace x; table B {} namespace y; table A { a:B; }", `a.fbs:1:50: there is no type B here: write x.B for that of line 1 of a.fbs`},
		{"table A { a:E; }\nenum E:int { A }", `a.fbs:1:13: E is defined after its use, in line 2: an enum or union must be defined before it`},
		{"table A { a:int; a:int; }", `a.fbs:1:18: A has two fields a: rename one of them`},
		{"table A {}\ntable A {}", `a.fbs:2:7: A is defined in line 1, too: rename one of them`},
		{"table A {} enum A:int { B }", `a.fbs:1:17: A is defined in line 1, too: rename one of them`},
		{"table int {}", `a.fbs:1:7: int is the name of a type of the language: use another one`},
		{"table A { A:int; }", `a.fbs:1:11: field A has the name of a table: rename one of them`},
		{"table A { a:[int:3]; }", `a.fbs:1:14: field a is an array of fixed length, which only structs have: remove the length, or use a struct`},
		{"struct A { a:[int:0]; }", `a.fbs:1:19: want the length of the array, from 1 to 65535, not "0"`},
		{"struct A { a:[int:65536]; }", `a.fbs:1:19: want the length of the array, from 1 to 65535, not "65536"`},
		{"struct A {}", `a.fbs:1:8: struct A has no fields: add one, or use a table`},
		{"struct A { a:A; }", `a.fbs:1:14: struct A contains itself, and would have no end: use a table`},
		{"struct A { b:B; } struct B { a:A; }", `a.fbs:1:14: struct B is defined after its use, in line 1: move it up; structs cannot contain each other`},
		{"struct A { a:string; }", `a.fbs:1:14: field a of struct A is string: a struct has numbers, structs and arrays of them; use a table`},
		{"table T {} struct A { a:[T:2]; }", `a.fbs:1:26: field a of struct A is [T:2]: a struct has numbers, structs and arrays of them; use a table`},
		{"struct A { a:int = 1; }", `a.fbs:1:20: field a: a struct has no defaults: all its fields are always there`},
		{"struct A { a:int (deprecated); }", `a.fbs:1:19: field a of a struct cannot be deprecated: all fields of a struct are always there, in their order`},
		{"struct A (force_align: 3) { a:int; }", `a.fbs:1:11: struct A: force_align is 3: want a power of two from 4 to 32`},
		{"struct A (force_align: 2) { a:int; }", `a.fbs:1:11: struct A: force_align is 2: want a power of two from 4 to 32`},
		{"struct A { a:[ulong:65535]; b:int; }", `a.fbs:1:29: field b is 524280 bytes behind the start of struct A, more than 65535: use a table`},
		{"struct A { a:[ulong:65535]; } struct B { a:[A:65535]; }", `a.fbs:1:38: struct B is larger than 2 GiB: use a table`},
		{"table A { a:int (required); }", `a.fbs:1:18: field a is a number and cannot be required: it has a default when it is absent`},
		{"table A { a:string = \"\" (required); }", `a.fbs:1:11: field a is required and has a default: remove one of them`},
		{"table A { a:int (key); b:int (key); }", `a.fbs:1:24: A has two keys, a and b: remove one`},
		{"table A { a:[int] (key); }", `a.fbs:1:11: field a cannot be a key: a key is a number, a string or a struct`},
		{"table A { a:int = null (key); }", `a.fbs:1:11: field a is optional and cannot be a key`},
		{"table A { a:int (id: 0); b:int; }", `a.fbs:1:26: field b has no id, and other fields of A have one: give one to all of them`},
		{"table A { a:int (id: 0); b:int (id: 2); }", `a.fbs:1:26: table A has no field with the id 1: ids are 0, 1, 2 and so on, and a union has two`},
		{"table A { a:int (id: 0); b:int (id: 0); }", `a.fbs:1:26: field b has the id 0, which field a has already`},
		{"table A { a:int (id: -1); }", `a.fbs:1:18: field a: the id "-1" is not from 0 to 65535`},
		{"union U { A } table A { u:U (id: 0); }", `a.fbs:1:30: field u: the id of a union is 1 or more, because its type has the id before it`},
		{"union U { A } table A { u:U; uType:int; }", `a.fbs:1:30: field uType has the name of generated code of field u: rename one of them`},
		{"table A { a:int (hash: \"fnv1_32\", hash: \"fnv1_32\"); }", `a.fbs:1:35: the attribute hash is there twice: remove one`},
		{"table A { a:int (hash: \"md5\"); }", `a.fbs:1:18: field a: the hash "md5" is unknown: use "fnv1_32" or "fnv1a_32"`},
		{"table A { a:byte (hash: \"md5\"); }", `a.fbs:1:19: field a cannot have the attribute hash: only integers of 16, 32 and 64 bits can`},
		{"table A { a:int (cpp_type: \"A\"); }", `a.fbs:1:18: field a has the attribute cpp_type and must have hash, too`},
		{"table A { a:int (shared); }", `a.fbs:1:18: field a is not a string and cannot be shared`},
		{"table A { a:int (native_inline); }", `a.fbs:1:18: field a cannot have the attribute native_inline: only structs and vectors of them or of tables can`},
		{"table A { a:int (native_custom_alloc: \"x\"); }", `a.fbs:1:18: native_custom_alloc is for tables and structs, not for field a`},
		{"table A { a:string (nested_flatbuffer: \"A\"); }", `a.fbs:1:21: field a cannot have the attribute nested_flatbuffer: only [ubyte] can`},
		{"table A { a:[ubyte] (nested_flatbuffer: \"B\"); }", `a.fbs:1:22: there is no type B: define it, or include the file that does`},
		{"table A { a:[byte] (flexbuffer); }", `a.fbs:1:21: field a cannot have the attribute flexbuffer: only [ubyte] can`},
		{"table A { a:int (vector64); }", `a.fbs:1:18: field a is not a vector and cannot have the attribute vector64`},
		{"table A { a:int (offset64); }", `a.fbs:1:18: field a is neither a string nor a vector and cannot have the attribute offset64`},
		{"table A { a:[string] (offset64); }", `a.fbs:1:23: field a cannot have the attribute offset64: only vectors of numbers and structs can`},
		{"table A { a:int (mine); }", `a.fbs:1:18: the attribute mine is unknown: correct it, or declare it with: attribute "mine";`},
		{"table A { a:int (); }", `a.fbs:1:18: want the name of an attribute, not ")"`},
		{"table A { a:int (id); }", `a.fbs:1:18: field a: the id "" is not an integer`},
		{"table A { a:int (id: 1.5); }", `a.fbs:1:22: want a text or an integer after attribute id, not "1.5"`},
		{"table A { a:int (key id: 0); }", `a.fbs:1:22: want "," or ")" after attribute key, not "id"`},
		{"attribute 5;", `a.fbs:1:11: want the name of an attribute, not "5"`},
		{"enum E { A }", `a.fbs:1:8: want ":" and the type of the values after enum E, such as ": byte", not "{"`},
		{"enum E:float { A }", `a.fbs:1:8: the values of enum E cannot be float: use an integer type such as byte or int`},
		{"enum E:byte { A = 200 }", `a.fbs:1:15: the number 200 of A is not from -128 to 127`},
		{"enum E:byte { A = 127, B }", `a.fbs:1:24: B has no number: the one before it is the largest of type byte`},
		{"enum E:byte { A = B }", `a.fbs:1:19: want the number of value A, not "B"`},
		{"enum E:byte { A, A }", `a.fbs:1:18: E has two values A: rename one of them`},
		{"enum E:byte { A = 1, B = 1 }", `a.fbs:1:22: A and B of E both have the number 1`},
		{"enum E:byte { A B }", `a.fbs:1:17: want "," or "}" after value A, not "B"`},
		{"enum E:byte { A.B }", `a.fbs:1:15: the name of a value has no dots: write A_B`},
		{"enum E:ubyte (bit_flags) { A = 8 }", `a.fbs:1:28: A is bit 8, and ubyte has the bits 0 to 7`},
		{"enum E:ubyte (force_align: 8) { A }", `a.fbs:1:15: force_align is for structs and vectors, not for E`},
		{"union U { int }", `a.fbs:1:11: member int of union U is int: a member is a table, a struct or string`},
		{"union U { A }", `a.fbs:1:11: there is no type A: define it, or include the file that does`},
		{"table A {} union U { a: [A] }", `a.fbs:1:26: member a of union U cannot be a vector: put it into a table`},
		{"rpc_service S {}", `a.fbs:1:13: rpc_service S has no methods: add one, or remove it`},
		{"table A {} rpc_service S { m(A):A; m(A):A; }", `a.fbs:1:36: rpc_service S has two methods m: rename one of them`},
		{"table A {} rpc_service S { m(A):A; } rpc_service S { m(A):A; }", `a.fbs:1:50: rpc_service S is defined at a.fbs:1:24, too: rename one of them`},
		{"table A {} rpc_service S { m A; }", `a.fbs:1:30: want "(" after the name of method m, not "A"`},
		{"table A {} rpc_service S { m(A); }", `a.fbs:1:32: want ":" and the table that method m returns, not ";"`},
		{"table A {} rpc_service S { m(A, A):A; }", `a.fbs:1:31: want ")" after the table that method m takes, not ","`},
		{"table A {} rpc_service S { m(int):A; }", `a.fbs:1:30: method m takes and returns tables, and int is none`},
		{"table A {} struct B { b:int; } rpc_service S { m(A):B; }", `a.fbs:1:53: method m takes and returns tables, and B is a struct: put it into a table`},
		{"table A {} rpc_service S { m(A):B; }", `a.fbs:1:33: there is no type B: define it, or include the file that does`},
		{"table A {} rpc_service S { m(A):A (streaming: \"both\"); }", `a.fbs:1:36: method m: streaming is "both": want "none", "client", "server" or "bidi"`},
		{"table A {} rpc_service S { m(A):A (oneway); }", `a.fbs:1:36: the attribute oneway is unknown: correct it, or declare it with: attribute "oneway";`},
		{"attribute oneway; table A { a:int; } rpc_service S { m(A):A (oneway); }", `a.fbs:1:59: method m is oneway and returns nothing: let it return a table without fields`},
		{"attribute oneway; table A {} rpc_service S { m(A):A (oneway, streaming: \"client\"); }", `a.fbs:1:46: method m is a stream and cannot be oneway: remove one of the attributes`},
		{"root_type A;", `a.fbs:1:11: there is no type A: define it, or include the file that does`},
		{"struct A { a:int; } root_type A;", `a.fbs:1:31: the root type A is a struct: it must be a table`},
		{"file_identifier \"ABC\";", `a.fbs:1:17: the file identifier "ABC" has 3 bytes: it must have 4`},
		{"file_extension bin;", `a.fbs:1:16: want a file extension in quotes, not "bin"`},
		{"namespace a.;", `a.fbs:1:13: want the name of what follows the dot, not ";"`},
		{"include a;", `a.fbs:1:9: want the name of the file to include in quotes, not "a"`},
		{"table A {} include \"a.fbs\";", `a.fbs:1:12: includes come before all other declarations: move it up`},
		{"include \"b.fbs\";", `a.fbs:1:9: there is no file "b.fbs" in . or the import folders: correct the name, or add its folder with -I`},
		{"table A { } /// late", `a.fbs:1:13: documentation must be above what it describes, on a line of its own: use // for a comment here`},
		{"/* no end", `a.fbs:1:1: the comment has no end: add */`},
		{"include \"no end", `a.fbs:1:9: the text has no end: add "`},
		{"include \"line\n\";", `a.fbs:1:14: a text has no line breaks and control characters: use an escape such as \n`},
		{`include "\q";`, `a.fbs:1:10: the escape "\\q" is unknown`},
		{`include "\u12g4";`, `a.fbs:1:10: the escape needs 4 hexadecimal digits`},
		{`include "\ud800";`, `a.fbs:1:16: half of a surrogate pair is missing: write \u twice, or the character itself`},
		{`include "\udc00";`, `a.fbs:1:10: this is half of a surrogate pair without the other one`},
		{"include \"\xff\";", `a.fbs:1:9: the text is not UTF-8`},
		{"table A { a:int; } #", `a.fbs:1:20: '#' is not part of a schema`},
		{"table Ä {}", `a.fbs:1:7: 'Ä' is not part of a schema`},
	} {
		_, err := fbs.Parse("a.fbs", []byte(test.text))
		if err == nil || err.Error() != test.want {
			t.Errorf("%s\n got: %v\nwant: %s", test.text, err, test.want)
		}
	}
}

// Several mistakes are reported at once, in the order of the file.
func TestSeveralMistakes(t *testing.T) {
	_, err := fbs.Parse("a.fbs", []byte(`table A {
  a int;
  b:string (required;
  c:int;
}
enum E:byte { A B, C = x, D }
rpc_service S { m(A):; n(A):A; o }
table B { a:int = ; }
`))
	want := `a.fbs:2:5: want ":" and a type after field a, not "int"
a.fbs:3:21: want "," or ")" after attribute required, not ";"
a.fbs:6:17: want "," or "}" after value A, not "B"
a.fbs:6:24: want the number of value C, not "x"
a.fbs:7:22: want the table that method m returns, not ";"
a.fbs:7:34: want "(" after the name of method o, not "}"
a.fbs:8:19: want the default of field a, not ";"`
	if err == nil || err.Error() != want {
		t.Errorf("the errors are\n%v\nwant\n%s", err, want)
	}
	_, err = fbs.Parse("a.fbs", []byte("table A { a:X; b:Y; }\ntable B { a:int = 1.5; }"))
	var list mistakes.List
	if !errors.As(err, &list) || len(list) != 3 || list[2].At.Line != 2 {
		t.Errorf("the errors are %v", err)
	}
	if _, err = fbs.Parse("a.fbs", []byte(strings.Repeat("tabel A {}\n", 1000))); !errors.As(err, &list) || len(list) != 20 {
		t.Errorf("%d errors are reported", len(list))
	}
}

// load loads files that are in memory.
func load(files map[string]string, imports []string, paths ...string) (*fbs.Schema, error) {
	l := fbs.Loader{Imports: imports, ReadFile: func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}}
	return l.Load(paths...)
}

func TestIncludes(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string // of the error
	}{
		{"through another", map[string]string{"a.fbs": `include "b.fbs"; table A { c:C; }`, "b.fbs": `include "c.fbs";`, "c.fbs": "table C {}"}, ""},
		{"beside the file", map[string]string{"a.fbs": `include "d/b.fbs"; table A { c:C; }`, "d/b.fbs": `include "c.fbs";`, "d/c.fbs": "table C {}"}, ""},
		{"import folder", map[string]string{"a.fbs": `include "b.fbs"; table A { b:B; }`, "lib/b.fbs": "table B {}"}, ""},
		{"each other", map[string]string{"a.fbs": `include "b.fbs"; table A { b:B; }`, "b.fbs": `include "a.fbs"; table B { a:A; }`}, ""},
		{"itself", map[string]string{"a.fbs": `include "a.fbs"; table A { a:A; }`}, ""},
		{"structs in each other", map[string]string{"a.fbs": `include "b.fbs"; struct A { b:B; }`, "b.fbs": `include "a.fbs"; struct B { a:A; }`}, "b.fbs:1:31: struct A is defined after its use, in line 1"},
		{"defined twice", map[string]string{"a.fbs": `include "b.fbs"; table A {}`, "b.fbs": "table A {}"}, "a.fbs:1:24: A is defined at b.fbs:1:7, too: rename one of them, or include that file"},
		{"mistake in it", map[string]string{"a.fbs": `include "b.fbs";`, "b.fbs": "tabel"}, "b.fbs:1:1: want a declaration"},
		{"not included", map[string]string{"a.fbs": `table A { b:B; }`, "b.fbs": "table B {}"}, "a.fbs:1:13: B is defined in b.fbs, which this file does not include: include it"},
		{"attribute of it", map[string]string{"a.fbs": `include "b.fbs"; table A (mine) {}`, "b.fbs": "attribute mine;"}, ""},
		{"attribute of another", map[string]string{"a.fbs": `table A (mine) {}`, "b.fbs": "attribute mine;"}, "a.fbs:1:10: the attribute mine is unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			paths := []string{"a.fbs"}
			if strings.Contains(test.name, "another") || test.name == "not included" {
				if _, there := test.files["b.fbs"]; there {
					paths = append(paths, "b.fbs")
				}
			}
			_, err := load(test.files, []string{"lib"}, paths...)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
	if _, err := load(nil, nil, "a.fbs"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// A chain of includes without end is refused.
func TestEndlessIncludes(t *testing.T) {
	n := 0
	l := fbs.Loader{ReadFile: func(string) ([]byte, error) {
		n++
		return []byte(`include "` + strings.Repeat("x", n) + `.fbs";`), nil
	}}
	if _, err := l.Load("a.fbs"); err == nil || !strings.Contains(err.Error(), "include more than 1000 others") {
		t.Errorf("the error is %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("namespace a.b; attribute x; enum E:byte (bit_flags) { A = 1, B } struct S (force_align: 8) { a:[int:3]; b:E; }")
	f.Add("/// doc\ntable T { a:int = 1 (id: 0); b:[string] = []; u:U; } union U { T, x: T } root_type T; file_identifier \"ABCD\";")
	f.Add("table T { a:double = sin(rad(90)); b:float = -inf; c:string = \"\\u00e4\\x41\"; } rpc_service S { m(T):T (streaming: \"bidi\"); }")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := fbs.Parse("a.fbs", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "a.fbs:") {
				t.Errorf("the error has no place: %v", err)
			}
			return
		}
		if c := s.Contract(); len(c.Messages)+len(c.Enums) != len(s.Files[0].Objects)+len(s.Files[0].Enums) {
			t.Error("the contract does not have all types")
		}
		for _, o := range s.Files[0].Objects {
			size := 0
			for i, f := range o.Fields {
				switch {
				case !o.Struct && f.Slot() != i:
					t.Errorf("field %s of %s has the slot %d, and is at %d", f.Name, o.Name, f.Slot(), i)
				case o.Struct && (f.Offset != size || f.Offset%f.Type.Align() != 0):
					t.Errorf("field %s of %s is at %d, which is not %d or not aligned", f.Name, o.Name, f.Offset, size)
				}
				size += f.Type.Size() + f.Padding
			}
			if o.Struct && (size != o.Size || size == 0 || size%o.Align != 0) {
				t.Errorf("%s has %d bytes, alignment %d and fields of %d", o.Name, o.Size, o.Align, size)
			}
		}
	})
}
